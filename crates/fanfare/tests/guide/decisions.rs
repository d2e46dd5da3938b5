//! Tests of docs/adr: each decision says what would change it, and the index has its status.

use super::guide;

#[test]
fn decisions_state_what_would_change_them_and_what_has_replaced_them() {
    let folder = guide().join("../adr");
    let index = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let files = std::fs::read_dir(&folder).unwrap().flatten();
    let names = files.map(|file| file.file_name().into_string().unwrap());
    let mut count = 0;
    for name in names.filter(|name| name != "README.md") {
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        let words = words.join(" ").to_lowercase();
        assert!(words.contains("would change"), "{name}");
        let number = name.split('-').next().unwrap();
        let start = format!("| [{number}]({name}) | ");
        let row = index.lines().find(|row| row.starts_with(&start));
        let is_replaced = row.map(|row| row.contains("superseded"));
        assert_eq!(is_replaced, Some(words.contains("**superseded")), "{name}");
        count += 1;
    }
    assert!(count > 70, "{count} decisions");
}
