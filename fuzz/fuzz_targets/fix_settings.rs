//! Any text as a settings file: an error with its line, or sessions, and remarks in the order of
//! the lines.
#![no_main]

use fanfare_engine::settings::Settings;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let lines = text.lines().count().max(1);
    match Settings::parse(text) {
        Ok(settings) => {
            assert!(!settings.sessions.is_empty());
            let remarks = &settings.remarks;
            assert!(remarks.is_sorted_by_key(|remark| remark.line));
            assert!(
                remarks
                    .iter()
                    .all(|remark| (1..=lines).contains(&remark.line))
            );
            for session in &settings.sessions {
                let _ = session.config.id.to_string();
            }
        }
        Err(error) => assert!((1..=lines).contains(&error.line), "{error}"),
    }
});
