//! Regular files that are read whole, such as configurations, keys and lists.

use crate::poll;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file for reading. Does not wait for the writer of a FIFO, which a reload would
/// do for as long as there is none.
///
/// # Errors
/// Those of [`File::open`], and [`io::ErrorKind::InvalidInput`] for a FIFO, a device, a socket or a
/// folder.
pub fn open(path: &Path) -> io::Result<File> {
    let file = poll::open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => {
            let why = "it is not a regular file";
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
    }
}

/// Reads a regular file of at most `most` bytes. Allocates the bytes.
///
/// # Errors
/// Those of [`open`] and of the system, and [`io::ErrorKind::FileTooLarge`] for a longer file.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    whole(open(path)?, most)
}

/// Reads everything up to the end, at most `most` bytes. Allocates the bytes. Waits for the writer
/// of a pipe.
///
/// # Errors
/// Those of the system, and [`io::ErrorKind::FileTooLarge`] if there is more.
pub fn whole(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let one_more = most.saturating_add(1);
    from.take(one_more).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => {
            let why = format!("the file has more than {most} bytes");
            Err(io::Error::new(io::ErrorKind::FileTooLarge, why))
        }
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_read_up_to_its_limit_and_nothing_else_is_opened() {
        let folder = std::env::temp_dir().join(format!("fanfare-regular-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        let long = read(&path, 4).unwrap_err();
        assert_eq!(long.to_string(), "the file has more than 4 bytes");
        let fifo = folder.join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        for other in [&*fifo, &folder, Path::new("/dev/null")] {
            let why = read(other, 5).unwrap_err().to_string();
            assert_eq!(why, "it is not a regular file", "{}", other.display());
        }
        let missing = read(&folder.join("none"), 5).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(&folder).unwrap();
    }
}
