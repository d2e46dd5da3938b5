//! Error codes of the specification, and errors with the place where they arose.

use std::borrow::Cow;
use std::fmt;

use crate::ids::FieldId;

/// The error codes of FAST 1.1 (appendix 4), and four further ones: [`Self::Truncated`] (`EOF`),
/// [`Self::Limit`] (`LIMIT`), [`Self::Input`] (`INPUT`) and [`Self::Foreign`] (`FOREIGN`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The template document is not well-formed or breaks the schema.
    S1,
    /// The operator does not apply to the type of the field.
    S2,
    /// The initial value cannot be converted to the type of the field.
    S3,
    /// A constant has no value.
    S4,
    /// A mandatory field with the default operator has no initial value.
    S5,
    /// A value has a type that cannot be converted to that of the field.
    D1,
    /// An integer in the stream is outside the bounds of its type.
    D2,
    /// The value cannot be encoded, because of the operator.
    D3,
    /// The previous value has another type than the field.
    D4,
    /// A mandatory field is absent and has neither previous nor initial value.
    D5,
    /// A mandatory field is absent and its previous value is empty.
    D6,
    /// A subtraction length exceeds the base value, or int32.
    D7,
    /// A static template reference names no template.
    D8,
    /// No template has the identifier in the stream.
    D9,
    /// A byte vector cannot be converted to or from this type.
    D10,
    /// A string does not have the syntax of the type it is converted to.
    D11,
    /// A block, or packet, has the size zero.
    D12,
    /// The exponent is outside -63 to 63, or the mantissa outside int64.
    R1,
    /// A Unicode string is not valid UTF-8.
    R2,
    /// A Unicode string for an ASCII field has other characters than ASCII.
    R3,
    /// An integer cannot be represented in the type of its field: one to be encoded, or the sum
    /// of a delta and its base.
    R4,
    /// A decimal has a fraction, or is too large, and cannot become an integer.
    R5,
    /// An integer is overlong.
    R6,
    /// A presence map is overlong.
    R7,
    /// A presence map has more bits than the fields use.
    R8,
    /// A string is overlong.
    R9,
    /// The bytes end inside a message.
    Truncated,
    /// A limit of [`crate::Limits`] is exceeded.
    Limit,
    /// A line of JSON or a FIX message cannot be read as a message, or a message to be encoded is
    /// incomplete or has more fields or entries than its template.
    Input,
    /// A message or record is encoded with other templates than its own.
    Foreign,
}

impl ErrorCode {
    /// Returns the code as the specification writes it, or `EOF`, `LIMIT`, `INPUT` or `FOREIGN`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.entry().0
    }

    /// Returns a short description of the error.
    #[must_use]
    pub const fn text(self) -> &'static str {
        self.entry().1
    }

    /// Returns true for the reportable errors, R1 to R9. A lenient decoder lets some of them pass
    /// ([`crate::Options::strict`]).
    #[must_use]
    pub const fn is_reportable(self) -> bool {
        matches!(
            self,
            Self::R1
                | Self::R2
                | Self::R3
                | Self::R4
                | Self::R5
                | Self::R6
                | Self::R7
                | Self::R8
                | Self::R9
        )
    }

    const fn entry(self) -> (&'static str, &'static str) {
        match self {
            Self::S1 => ("S1", "not a valid template document"),
            Self::S2 => ("S2", "operator does not apply to this type"),
            Self::S3 => ("S3", "initial value does not fit the type"),
            Self::S4 => ("S4", "constant without a value"),
            Self::S5 => ("S5", "mandatory default without a value"),
            Self::D1 => ("D1", "value cannot be converted to the type of the field"),
            Self::D2 => ("D2", "integer out of bounds"),
            Self::D3 => ("D3", "value cannot be encoded with this operator"),
            Self::D4 => ("D4", "previous value has another type"),
            Self::D5 => (
                "D5",
                "mandatory field absent, no previous and no initial value",
            ),
            Self::D6 => ("D6", "mandatory field absent, or previous value empty"),
            Self::D7 => ("D7", "subtraction length exceeds the base value"),
            Self::D8 => ("D8", "unknown template name"),
            Self::D9 => ("D9", "unknown template identifier"),
            Self::D10 => ("D10", "byte vectors convert only to and from strings"),
            Self::D11 => ("D11", "string has the wrong syntax"),
            Self::D12 => ("D12", "block of size zero"),
            Self::R1 => ("R1", "decimal out of range"),
            Self::R2 => ("R2", "not valid UTF-8"),
            Self::R3 => ("R3", "not an ASCII string"),
            Self::R4 => ("R4", "integer does not fit the type"),
            Self::R5 => ("R5", "decimal is no integer"),
            Self::R6 => ("R6", "overlong integer"),
            Self::R7 => ("R7", "overlong presence map"),
            Self::R8 => ("R8", "presence map has more bits than required"),
            Self::R9 => ("R9", "overlong string"),
            Self::Truncated => ("EOF", "bytes end inside a message"),
            Self::Limit => ("LIMIT", "limit exceeded"),
            Self::Input => ("INPUT", "not a message"),
            Self::Foreign => ("FOREIGN", "message is of other templates"),
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error in a template document (S1 to S5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// The code, S1 to S5.
    pub code: ErrorCode,
    /// The line in the document, from 1.
    pub line: u32,
    /// The column in the line, from 1.
    pub column: u32,
    /// The description of the error, with the names concerned.
    pub message: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at {}:{}: {}",
            self.code, self.line, self.column, self.message
        )
    }
}

impl std::error::Error for TemplateError {}

/// The limit that is exceeded ([`crate::Limits`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Message,
    Text,
    Entries,
    Fields,
    Texts,
    References,
}

impl Bound {
    const fn text(self) -> &'static str {
        match self {
            Self::Message => "limit exceeded: message too long",
            Self::Text => "limit exceeded: text too long",
            Self::Entries => "limit exceeded: too many entries",
            Self::Fields => "limit exceeded: too many fields",
            Self::Texts => "limit exceeded: too many bytes of text",
            Self::References => "limit exceeded: references nested too deeply",
        }
    }
}

/// The number of levels of sequences whose entries an error path names.
pub(crate) const PATH_DEPTH: usize = 8;

/// An error of the decoder or the encoder. It is small and holds no heap memory: [`Self::path`] and
/// [`Self::template_name`] look up the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodecError {
    /// The error code.
    pub code: ErrorCode,
    /// The offset of the offending byte in the decoder's input, or the offset in the encoder's
    /// output.
    pub offset: usize,
    /// The index of the innermost template in the program, if one was known.
    pub template: Option<u32>,
    /// The field, if one was concerned.
    pub field: Option<FieldId>,
    /// The template identifier in the stream that no template has (D9), if it was read.
    pub template_id: Option<u32>,
    /// The limit that is exceeded ([`ErrorCode::Limit`]), if it is one of the codec.
    bound: Option<Bound>,
    entries: [u32; PATH_DEPTH],
    depth: u8,
    of_entry: bool,
}

impl CodecError {
    /// Returns an error of no particular field.
    #[must_use]
    pub const fn new(code: ErrorCode, offset: usize) -> Self {
        Self {
            code,
            offset,
            template: None,
            field: None,
            template_id: None,
            bound: None,
            entries: [0; PATH_DEPTH],
            depth: 0,
            of_entry: false,
        }
    }

    /// Returns the error with this field. An error that already has a field, which is inside this
    /// one, keeps it.
    #[must_use]
    pub const fn in_field(mut self, field: FieldId) -> Self {
        if self.field.is_none() {
            self.field = Some(field);
        }
        self
    }

    /// Returns the decoder's error for a template identifier that no template has.
    #[must_use]
    pub(crate) const fn unknown_template(id: u32, offset: usize) -> Self {
        let mut error = Self::new(ErrorCode::D9, offset);
        error.template_id = Some(id);
        error
    }

    /// Returns the error of an exceeded limit.
    #[must_use]
    pub(crate) const fn beyond(bound: Bound, offset: usize) -> Self {
        let mut error = Self::new(ErrorCode::Limit, offset);
        error.bound = Some(bound);
        error
    }

    /// Returns the error, changed from [`ErrorCode::Truncated`] to [`ErrorCode::Limit`]: a limit
    /// cut the bytes.
    #[must_use]
    pub(crate) fn cut_by_limit(mut self) -> Self {
        if self.code == ErrorCode::Truncated {
            self.code = ErrorCode::Limit;
            self.bound = Some(Bound::Message);
        }
        self
    }

    /// Returns a short description of the error, with the identifier that was read (D9) or the
    /// limit that is exceeded ([`ErrorCode::Limit`]). It allocates for D9 alone.
    #[must_use]
    pub fn text(&self) -> Cow<'static, str> {
        match (self.template_id, self.bound) {
            (Some(id), _) => format!("{} {id}", self.code.text()).into(),
            (None, Some(bound)) => bound.text().into(),
            (None, None) => self.code.text().into(),
        }
    }

    /// Returns the error with its offset increased by `bytes`.
    #[must_use]
    pub(crate) const fn behind(mut self, bytes: usize) -> Self {
        self.offset += bytes;
        self
    }

    /// Returns the error with this template. An error that already has a template, which is an
    /// inner one, keeps it.
    #[must_use]
    pub(crate) const fn in_template(mut self, template: u32) -> Self {
        if self.template.is_none() {
            self.template = Some(template);
        }
        self
    }

    /// Adds the entry of a sequence in which the error arose. Inner sequences are added first.
    #[must_use]
    pub(crate) fn in_entry(mut self, sequence: FieldId, index: u32) -> Self {
        if self.field.is_none() {
            self.field = Some(sequence);
            self.of_entry = true;
        }
        if let Some(entry) = self.entries.get_mut(usize::from(self.depth)) {
            *entry = index;
            self.depth += 1;
        }
        self
    }

    /// Returns the entries in which the error arose, those of inner sequences first.
    pub(crate) fn entries(&self) -> &[u32] {
        self.entries
            .get(..usize::from(self.depth))
            .unwrap_or_default()
    }

    /// Returns whether the error is ascribed to an entry as a whole.
    pub(crate) const fn is_of_entry(&self) -> bool {
        self.of_entry
    }
}

/// The place where the error of a message is left. A result as large as the error would be slow to
/// return.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure(Option<CodecError>);

impl Failure {
    /// Stores an error, and returns `None`.
    #[cold]
    pub(crate) fn set<T>(&mut self, error: CodecError) -> Option<T> {
        self.0 = Some(error);
        None
    }

    /// Returns the value of a result, or stores its error and returns `None`.
    #[inline(always)]
    pub(crate) fn keep<T>(&mut self, result: Result<T, CodecError>) -> Option<T> {
        match result {
            Ok(done) => Some(done),
            Err(error) => self.set(error),
        }
    }

    /// Applies `place` to the stored error, to add where it arose.
    #[cold]
    pub(crate) fn add(&mut self, place: impl FnOnce(CodecError) -> CodecError) {
        self.0 = self.0.take().map(place);
    }

    /// Takes the stored error.
    #[cold]
    pub(crate) fn take(&mut self) -> CodecError {
        let none = CodecError::new(ErrorCode::Input, 0);
        self.0.take().unwrap_or(none)
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        write!(f, "{} at byte {}: {text}", self.code, self.offset)
    }
}

impl std::error::Error for CodecError {}
