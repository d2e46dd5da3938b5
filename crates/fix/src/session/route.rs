//! The route of an answer, which is the reverse of the route of its message.

use super::identity::Version;
use crate::codec::Message;
use crate::tag;

/// The routing fields of an answer. OnBehalfOfCompID(115) and OnBehalfOfSubID(116) become
/// DeliverToCompID(128) and DeliverToSubID(129) and the other way round, and from FIX.4.1 on also
/// OnBehalfOfLocationID(144) and DeliverToLocationID(145). Empty fields are left out.
#[derive(Clone, Copy, Debug)]
pub struct ReverseRoute<'a> {
    fields: [(u32, &'a [u8]); 6],
    len: usize,
}

/// The fields of an answer, ascending, each with the field of the message that has its value.
const PAIRS: [(u32, u32); 6] = [
    (tag::ON_BEHALF_OF_COMP_ID, tag::DELIVER_TO_COMP_ID),
    (tag::ON_BEHALF_OF_SUB_ID, tag::DELIVER_TO_SUB_ID),
    (tag::DELIVER_TO_COMP_ID, tag::ON_BEHALF_OF_COMP_ID),
    (tag::DELIVER_TO_SUB_ID, tag::ON_BEHALF_OF_SUB_ID),
    (tag::ON_BEHALF_OF_LOCATION_ID, tag::DELIVER_TO_LOCATION_ID),
    (tag::DELIVER_TO_LOCATION_ID, tag::ON_BEHALF_OF_LOCATION_ID),
];

impl<'a> ReverseRoute<'a> {
    /// Returns the route of an answer to `message`.
    pub fn of(message: &Message<'a>, version: Version) -> Self {
        let mut route = Self {
            fields: [(0, &[]); 6],
            len: 0,
        };
        for (to, from) in PAIRS {
            let location = to == tag::ON_BEHALF_OF_LOCATION_ID || to == tag::DELIVER_TO_LOCATION_ID;
            if location && version == Version::Fix40 {
                continue;
            }
            if let Some(value) = message.get(from)
                && !value.is_empty()
                && let Some(place) = route.fields.get_mut(route.len)
            {
                *place = (to, value);
                route.len += 1;
            }
        }
        route
    }

    /// Returns the route without the fields that have more than `limit` bytes.
    pub(super) fn up_to(mut self, limit: usize) -> Self {
        let all = self;
        self.len = 0;
        for field in all.fields().iter().filter(|field| field.1.len() <= limit) {
            if let Some(place) = self.fields.get_mut(self.len) {
                *place = *field;
                self.len += 1;
            }
        }
        self
    }

    /// Returns the fields in ascending order of tags, for `Session::send_with`.
    pub fn fields(&self) -> &[(u32, &'a [u8])] {
        self.fields.get(..self.len).unwrap_or_default()
    }

    /// Returns the most bytes that the fields take.
    pub(super) fn room(&self) -> usize {
        self.fields().iter().map(|field| field.1.len() + 5).sum()
    }
}
