//! The writers of topics that do not wait for a subscriber that takes nothing.

use crate::notice::{Notice, Notices};
use fanfare_dds::relief::RelievedWriter;
use fanfare_engine::counters::Counter;
use fanfare_wire::text::Escaped;

/// Counts a writer that waits for no subscriber now, or does again, and sends a notice. `lossy` is
/// the number of such topics.
pub(crate) fn tell(writer: &RelievedWriter, is_relieved: bool, lossy: &Counter, notices: &Notices) {
    let topic = writer.topic().name().to_owned();
    if !is_relieved {
        lossy.set(lossy.value().saturating_sub(1));
        return notices.send(Notice::DdsRestored { topic });
    }
    lossy.increment(1);
    let readers = writer.readers().unwrap_or_default();
    let readers = readers.iter().map(|reader| reader.to_string());
    let readers = readers.map(|reader| Escaped::text(&reader).to_string());
    notices.send(Notice::DdsRelieved {
        topic,
        readers: readers.collect(),
    });
}
