//! Tests of the import of file stores that other engines wrote.

use crate::common::{Folder, done, fanfare};
use crate::engines::file_stores;

#[test]
fn stores_of_other_engines_are_taken_over_whole() {
    for (name, mut writer) in file_stores() {
        let folder = Folder::new(name);
        let (old, new) = (folder.file("old"), folder.file("new"));
        std::fs::create_dir(&old).unwrap();
        let written = writer.arg(&old).output().unwrap();
        assert!(written.status.success(), "{name}: {written:?}");
        let files = format!("{old}/FIX.4.4-BUY-SELL");
        let import = ["store", "import", &files, "--into", &new, "--json"];
        let taken = done(&mut fanfare(&import)).json();
        let figures = ["messages", "lost", "next_sender", "next_target"].map(|key| &taken[key]);
        assert_eq!(
            figures.map(|figure| figure.as_u64().unwrap()),
            [300, 0, 301, 42],
            "{name}"
        );
        done(&mut fanfare(&["store", "verify", &new]));
        let text = done(&mut fanfare(&["store", "export", &new])).out;
        let expected = |seq| format!("8=FIX.4.4|9=40|35=D|49=BUY|56=SELL|34={seq}|10=000|\n");
        assert_eq!(text, (1..=300).map(expected).collect::<String>(), "{name}");
    }
}
