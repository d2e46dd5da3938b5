//! Tests that PyPI's databento-dbn reads the output of `fanfare market events --format dbn`.

use crate::common::{Folder, done, fanfare};
use crate::engines::{databento_dbn, source};
use std::process::Command;

#[test]
fn databento_dbn_reads_what_market_events_writes() {
    let Some(python) = databento_dbn() else {
        return;
    };
    let folder = Folder::new("interop-dbn");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (feed, target) = (path("spectra.dat"), path("spectra.dbn"));
    let generate = ["fast", "generate", "spectra", "-n", "300", "--trades", "20"];
    done(fanfare(&generate).args(["-o", &feed]));
    let events = ["market", "events", "-t", "builtin:spectra", "-f", &feed];
    let said = done(&mut fanfare(&events));
    done(fanfare(&events).args(["--format", "dbn", "-o", &target]));
    let mut reader = Command::new(python);
    let out = reader.arg(source("dbn_reader.py")).arg(&target).output();
    let out = out.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(out.status.success(), "{}", text(&out.stderr));
    // The expected contents of each record of a level or a trade, from the event.
    let wanted = said.out.lines().filter_map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let kind = event["kind"].as_str().unwrap();
        let price = event["price"].as_str().unwrap_or("-");
        let size = &event["size"];
        let size = size
            .as_u64()
            .map_or("-".to_owned(), |size| size.to_string());
        let (id, number) = (event["security_id"].as_str()?, &event["rpt_seq"]);
        let is_wanted = matches!(kind, "level" | "trade");
        is_wanted.then(|| format!("{kind} {id} {number} {price} {size}"))
    });
    let wanted: Vec<String> = wanted.collect();
    assert!(wanted.len() > 300);
    assert_eq!(text(&out.stdout).lines().collect::<Vec<_>>(), wanted);
}
