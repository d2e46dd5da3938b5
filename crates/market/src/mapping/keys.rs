//! The keys of a mapping file that name fields.

/// A key of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKey {
    Number,
    Last,
    Total,
    Next,
    RptSeq,
    Status,
    LastFragment,
    FirstFragment,
    Fragment,
}

impl MessageKey {
    pub(super) const ALL: [Self; 9] = [
        Self::Number,
        Self::Last,
        Self::Total,
        Self::Next,
        Self::RptSeq,
        Self::Status,
        Self::LastFragment,
        Self::FirstFragment,
        Self::Fragment,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Last => "last",
            Self::Total => "total",
            Self::Next => "next",
            Self::RptSeq => "rpt-seq",
            Self::Status => "status",
            Self::LastFragment => "last-fragment",
            Self::FirstFragment => "first-fragment",
            Self::Fragment => "fragment",
        }
    }
}

/// A key of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKey {
    Type,
    Action,
    Price,
    Size,
    Level,
    Id,
    RptSeq,
}

impl EventKey {
    pub(super) const ALL: [Self; 7] = [
        Self::Type,
        Self::Action,
        Self::Price,
        Self::Size,
        Self::Level,
        Self::Id,
        Self::RptSeq,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Action => "action",
            Self::Price => "price",
            Self::Size => "size",
            Self::Level => "level",
            Self::Id => "id",
            Self::RptSeq => "rpt-seq",
        }
    }
}
