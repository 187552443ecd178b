//! Exit codes: all of them, and what ends with which.

use std::io;

use pintle_api::OperationPhase;
use pintle_model::{Problem, Reason};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done; with `--wait` and `app wait` also healthy.
    Done,
    /// An error.
    Error,
    /// The command line or the configuration is wrong.
    Usage,
    /// `diff` found differences.
    Differences,
    /// Not healthy, or not ended, in time.
    NotInTime,
    /// Refused or deferred by a guard, a hold or a window.
    Refused,
}

impl Exit {
    /// The number. Scripts rely on it: never change one.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Error => 1,
            Self::Usage => 2,
            Self::Differences => 3,
            Self::NotInTime => 4,
            Self::Refused => 5,
        }
    }

    /// Of a command that ends with this reason.
    pub fn of_reason(reason: Reason) -> Self {
        match reason.exit_code() {
            2 => Self::Usage,
            4 => Self::NotInTime,
            5 => Self::Refused,
            _ => Self::Error,
        }
    }

    /// Of a command whose operation ended in this phase.
    pub fn of_phase(phase: OperationPhase) -> Self {
        match phase {
            OperationPhase::Succeeded => Self::Done,
            OperationPhase::Running | OperationPhase::Terminating => Self::NotInTime,
            OperationPhase::Failed | OperationPhase::Error => Self::Error,
        }
    }
}

/// Why a command could not go on.
#[derive(Debug)]
pub enum Failure {
    /// What the person is told.
    Problem(Problem),
    /// The output could not be written.
    Output(io::Error),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_the_documentation() {
        let all = [
            (Exit::Done, 0),
            (Exit::Error, 1),
            (Exit::Usage, 2),
            (Exit::Differences, 3),
            (Exit::NotInTime, 4),
            (Exit::Refused, 5),
        ];
        for (exit, code) in all {
            assert_eq!(exit.code(), code);
        }
    }

    #[test]
    fn every_reason_keeps_its_exit_code() {
        for reason in Reason::ALL {
            assert_eq!(Exit::of_reason(*reason).code(), reason.exit_code(), "{reason}");
        }
    }
}
