//! Disk use is bounded.

use std::path::Path;
use std::sync::Arc;

use pintle::records;
use pintle::store::{Store, Table};
use pintle_core::engine::record::{
    AppRecord, ApplyWay, CommitRecord, DesiredEntry, HistoryRecord, InventoryRecord, ObjectOptions,
    ObjectResult, OperationRecord, Phase, Place, RenderRecord, ResultCode, Trigger, Write,
};
use pintle_model::{AppKey, Digest, ObjectKey, Origin, Revision};

use super::support::{Rng, names, open_at, put};

const HISTORY: u64 = 10;
const OBJECTS: u64 = 10;

fn folder_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        let meta = entry.metadata().unwrap();
        // What the disk gives for it, which is more than its length: room is reserved behind the database's end.
        bytes += meta.blocks() * 512;
        if meta.is_dir() {
            bytes += folder_bytes(&entry.path());
        }
    }
    bytes
}

/// One sync as the pipeline writes it: the render, the journal, the end.
fn sync(store: &Store, app: &AppKey, id: u64, rng: &mut Rng) {
    let at = jiff::Timestamp::UNIX_EPOCH;
    let revision = Revision::from_bytes(Digest::of(&id.to_be_bytes()).as_bytes()[..20].try_into().unwrap());
    let mut payloads = Vec::new();
    let mut objects = Vec::new();
    for object in 0..OBJECTS {
        // A fifth of the objects changes with each sync.
        let version = (id + object) / 5;
        let payload = Rng(object << 32 | version).text(2_500).into_bytes();
        let key: ObjectKey = format!("apps/Deployment/shop/web-{object}").parse().unwrap();
        objects.push(DesiredEntry {
            key,
            api_version: "apps/v1".into(),
            manifest: Digest::of(&payload),
            wave: 0,
            options: ObjectOptions::default(),
            way: ApplyWay::Apply,
            no_migration: false,
            ignore: false,
            only_create: false,
            fail_on_shared: false,
            adopt: false,
            lenient: false,
            ignore_health: false,
            ignored: vec![],
            origin: Origin { file: "web.yaml".into(), line: 1 },
        });
        payloads.push(payload);
    }
    let render = RenderRecord {
        id: Digest::of(format!("render {id}").as_bytes()),
        revision,
        objects: objects.clone(),
        hooks: vec![],
        commit: Some(CommitRecord { author: "A Person".into(), subject: rng.text(60), time: at }),
        warnings: vec![],
        children: vec![],
    };
    records::save_render(store, &render, &payloads).unwrap();
    let operation = OperationRecord {
        id,
        trigger: Trigger::Automated,
        render: render.id,
        revision,
        plan: Digest::of(b"plan"),
        prune: true,
        selection: vec![],
        confirm: None,
        cascade: false,
        started: at,
    };
    let mut begin = vec![Write::Operation(app.clone(), Some(operation))];
    begin.extend(
        objects
            .iter()
            .map(|entry| Write::Inventory(app.clone(), entry.key.clone(), Some(inventory(entry, id)))),
    );
    store.commit(records::batch(store, &begin).unwrap()).unwrap();
    let history = HistoryRecord {
        id,
        trigger: Trigger::Automated,
        revision,
        render: render.id,
        phase: Phase::Succeeded,
        message: "10 objects applied".into(),
        started: at,
        finished: at,
        results: objects
            .iter()
            .map(|entry| ObjectResult {
                key: entry.key.clone(),
                code: ResultCode::Synced,
                message: "configured".into(),
            })
            .collect(),
        commit: None,
        operation: id,
        notes: vec![],
        retries: 0,
    };
    let record = AppRecord {
        spec: serde_json::json!({"metadata": {"name": "shop"}, "spec": {"text": rng.text(800)}}),
        place: Place::Bootstrap,
        detached: false,
        render: Some(render.id),
        render_spec: None,
        synced: Some(revision),
        satisfied: Some(render.id),
        pin: None,
        last_history: id,
        pause: None,
        hooks_done: None,
    };
    let mut end = vec![
        Write::History(app.clone(), history),
        Write::App(app.clone(), Some(record)),
        Write::Operation(app.clone(), None),
        Write::Collect,
    ];
    if id > HISTORY {
        end.push(Write::DropHistory(app.clone(), vec![id - HISTORY]));
    }
    store.commit(records::batch(store, &end).unwrap()).unwrap();
    store.collect_blobs(&records::manifests_in_use(store).unwrap()).unwrap();
    store.export().unwrap();
}

fn inventory(entry: &DesiredEntry, id: u64) -> InventoryRecord {
    InventoryRecord {
        uid: Some(Arc::from(format!("{:?}", Digest::of(entry.key.to_string().as_bytes())))),
        manifest: Some(entry.manifest),
        set: Some(Digest::of(b"set")),
        projection: Some(Digest::of(&id.to_be_bytes())),
        adopted: pintle_core::engine::record::Adopted::No,
        options: ObjectOptions::default(),
        hook: None,
        wave: 0,
        deleting: false,
    }
}

#[test]
fn a_thousand_syncs_with_a_history_of_ten_stay_below_twenty_mebibytes() {
    // In memory where there is such a folder: 1,000 syncs have 10,000 fsyncs, and this test is about sizes.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let app: AppKey = "pintle/shop".parse().unwrap();
    let store = open_at(folder.path()).unwrap().store;
    let mut rng = Rng(1);
    let mut most = 0;
    for id in 1..=1_000 {
        sync(&store, &app, id, &mut rng);
        most = most.max(folder_bytes(folder.path()));
    }
    assert_eq!(store.keys(Table::History, "").unwrap().len() as u64, HISTORY);
    assert_eq!(store.keys(Table::Renders, "").unwrap().len() as u64, HISTORY);
    let blobs = store.keys(Table::Manifests, "").unwrap().len() as u64;
    assert!(blobs <= OBJECTS * HISTORY, "{blobs}");
    let before = store.size_on_disk() >> 10;
    let compacted = store.compact().unwrap();
    eprintln!(
        "1,000 syncs of {OBJECTS} objects: {before} KiB of database, {} KiB after compaction; the directory had at most {} KiB",
        compacted.after >> 10,
        most >> 10
    );
    assert!(most < 20 << 20, "{most}");
    assert_eq!(names(&folder.path().join("db/blobs"), ""), [""; 0]);
    assert_eq!(records::history(&store, &app).unwrap().len() as u64, HISTORY);
}

#[test]
fn compaction_gives_back_what_was_once_needed_and_keeps_every_record() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap().store;
    for number in 0..60 {
        put(&store, Table::History, &format!("{number}"), &Rng(number).text(100_000)).unwrap();
    }
    for number in 1..60 {
        let mut batch = pintle::store::Batch::new();
        batch.delete(Table::History, &format!("{number}"));
        store.commit(batch).unwrap();
    }
    let generation = store.generation();
    let compacted = store.compact().unwrap();
    assert!(compacted.after * 3 < compacted.before, "{compacted:?}");
    assert_eq!(store.generation(), generation);
    assert_eq!(store.get::<String>(Table::History, "0").unwrap().unwrap(), Rng(0).text(100_000));
    // Commits go on, and the next start finds all of it.
    let generation = put(&store, Table::Apps, "a", "one").unwrap();
    assert_eq!(names(folder.path(), "db"), ["db"]);
    drop(store);
    let opened = open_at(folder.path()).unwrap();
    assert_eq!((opened.notes, opened.store.generation()), (vec![], generation));
    assert_eq!(opened.store.check().1, [""; 0]);
}

#[test]
fn readers_and_writers_go_on_during_a_compaction() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).unwrap().store;
    put(&store, Table::History, "big", &Rng(1).text(2_000_000)).unwrap();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            for _ in 0..60 {
                assert!(store.get::<String>(Table::History, "big").unwrap().is_some());
            }
        });
        let writer = scope.spawn(|| {
            for number in 0..60 {
                put(&store, Table::Apps, "counter", &format!("{number}")).unwrap();
            }
        });
        for _ in 0..3 {
            store.compact().unwrap();
        }
        reader.join().unwrap();
        writer.join().unwrap();
    });
    assert_eq!(store.get::<String>(Table::Apps, "counter").unwrap().unwrap(), "59");
    drop(store);
    assert_eq!(open_at(folder.path()).unwrap().notes, []);
}
