//! Temporary files of a test.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// A path for a file, a socket or a folder of one test. What is there at the end of the test is
/// removed, also if the test fails.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Returns a path that no other caller has, in this process or another. It ends in `name`, and
    /// nothing is there.
    #[must_use]
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fanfare-{}-{number}-{name}", process::id());
        let scratch = Self(env::temp_dir().join(name));
        // An earlier process of the same number may have been killed.
        scratch.clear();
        scratch
    }

    /// Returns the text of the file, which is empty if there is no file.
    #[must_use]
    pub fn text(&self) -> String {
        fs::read_to_string(&self.0).unwrap_or_default()
    }

    /// Writes the file.
    ///
    /// # Panics
    /// The file cannot be written.
    #[allow(clippy::expect_used, reason = "for tests")]
    pub fn write(&self, content: impl AsRef<[u8]>) {
        fs::write(&self.0, content).expect("a temporary file is written");
    }

    fn clear(&self) {
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_are_removed_at_the_end() {
        let (file, folder) = (Scratch::new("same"), Scratch::new("same"));
        assert_eq!(file.text(), "");
        file.write("text");
        assert_eq!(file.text(), "text");
        fs::create_dir_all(folder.join("inner")).unwrap();
        let paths = [file.to_path_buf(), folder.to_path_buf()];
        assert!(paths.iter().all(|path| path.exists()));
        drop((file, folder));
        assert!(!paths.iter().any(|path| path.exists()));
    }
}
