//! Where logs go and how much of them.

use std::io::{self, IsTerminal};

use pintle_model::{Problem, Reason};
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use super::args::{Globals, LogFormat};

/// Starts logging to stderr or journald; `service` decides the default level.
pub(super) fn start(globals: &Globals, service: bool) -> Result<(), Problem> {
    // The client library logs every refused request as an error; what matters of it stands in our own lines.
    let default = if service { "info,kube_client=off" } else { "warn,kube_client=off" };
    let text = globals.log_level.as_deref().unwrap_or(default);
    let filter = EnvFilter::builder().parse(text).map_err(|error| {
        Problem::new(
            Reason::Usage,
            format!("--log-level {text}: {error}; write error, warn, info, debug, trace, or directives such as pintle=debug"),
        )
    })?;
    let layer = layer(globals.log_format)?;
    // Only a second start in one process fails, and there the first one goes on.
    let _ = Registry::default().with(layer.with_filter(filter)).try_init();
    Ok(())
}

fn layer(format: LogFormat) -> Result<Box<dyn Layer<Registry> + Send + Sync>, Problem> {
    // systemd.exec(5): JOURNAL_STREAM is set when stderr goes to the journal.
    let under_systemd = std::env::var_os("JOURNAL_STREAM").is_some() && !io::stderr().is_terminal();
    let text = || {
        let ansi = super::colour(io::stderr().is_terminal());
        tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(ansi).with_target(false).boxed()
    };
    match format {
        LogFormat::Text => Ok(text()),
        LogFormat::Json => Ok(tracing_subscriber::fmt::layer().json().with_writer(io::stderr).boxed()),
        LogFormat::Journald => tracing_journald::layer()
            .map(Layer::boxed)
            .map_err(|error| Problem::new(Reason::Usage, format!("--log-format journald: {error}"))),
        LogFormat::Auto if under_systemd => {
            Ok(tracing_journald::layer().map_or_else(|_| text(), Layer::boxed))
        }
        LogFormat::Auto => Ok(text()),
    }
}
