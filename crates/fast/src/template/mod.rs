//! Templates as the XML declares them: a validated tree, before it becomes a program.

mod encoding;
mod initial;
pub mod limits;
mod xml;

pub use encoding::decode;
pub use xml::schema::Deviations;

use crate::value::{Decimal, IntType, TextType};

/// A name with its namespace (section 7). The namespace is empty where none is declared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Name {
    /// Namespace URI.
    pub ns: String,
    /// Local name.
    pub local: String,
}

/// Where something stands in the document, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

/// All templates of a document, in its order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TemplateSet {
    /// The templates.
    pub templates: Vec<Template>,
}

/// One template.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// Its name, in the `templateNs` namespace.
    pub name: Name,
    /// Its identifier on the wire; a template without one can only be referred to by name.
    pub id: Option<u32>,
    /// True if a message of this template clears the dictionaries first.
    pub reset: bool,
    /// The application type it is for.
    pub type_ref: Option<Name>,
    /// What it consists of.
    pub body: Vec<Instruction>,
    /// Where it is declared.
    pub position: Position,
}

/// A field or a template reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    /// The field's name; of a reference, the template's, or empty if it is dynamic.
    pub name: Name,
    /// The `id` attribute.
    pub id: Option<String>,
    /// True for `presence="optional"`.
    pub optional: bool,
    /// What it is.
    pub kind: Kind,
    /// Where it is declared.
    pub position: Position,
}

/// What an instruction encodes.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// An integer.
    Int(IntType, Operator),
    /// A decimal with one operator, or none.
    Decimal(Operator),
    /// A decimal with operators of its own for exponent and mantissa.
    SplitDecimal {
        /// Operator of the exponent, an int32.
        exponent: Operator,
        /// Operator of the mantissa, an int64.
        mantissa: Operator,
    },
    /// A string or byte vector.
    Text(TextType, Operator),
    /// A group.
    Group(Block),
    /// A sequence.
    Sequence {
        /// The length field.
        length: Length,
        /// What one entry consists of.
        entry: Block,
    },
    /// A bit group of FAST 1.2.
    Bits(BitGroup),
    /// A static reference to the template of the instruction's name.
    StaticRef,
    /// A dynamic reference.
    DynamicRef,
}

/// Integers of a few bits each in one entity.
#[derive(Debug, Clone, PartialEq)]
pub struct BitGroup {
    /// Its members, all of [`Kind::Int`] without operators, and how many bits each has.
    pub members: Vec<(Instruction, u32)>,
    /// The operator, for all bits together as a number, the first member topmost.
    pub operator: Operator,
}

impl BitGroup {
    /// Returns how many bits there are.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.members.iter().map(|(_, bits)| bits).sum()
    }
}

/// Instructions inside a group or a sequence.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    /// The application type of the contents.
    pub type_ref: Option<Name>,
    /// The contents.
    pub body: Vec<Instruction>,
}

/// The length field of a sequence, a uInt32.
#[derive(Debug, Clone, PartialEq)]
pub struct Length {
    /// Its name; `None` if it is implicit.
    pub name: Option<Name>,
    /// The `id` attribute.
    pub id: Option<String>,
    /// Its operator.
    pub operator: Operator,
}

/// A field operator with its context.
#[derive(Debug, Clone, PartialEq)]
pub struct Operator {
    /// Which one.
    pub kind: OperatorKind,
    /// The dictionary of the previous value.
    pub dictionary: Dictionary,
    /// The key in it, where it is not the field's name.
    pub key: Option<Name>,
    /// The initial value.
    pub initial: Option<Initial>,
}

impl Operator {
    const fn none() -> Self {
        Self {
            kind: OperatorKind::None,
            dictionary: Dictionary::Global,
            key: None,
            initial: None,
        }
    }
}

/// The field operators (section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperatorKind {
    /// No operator: the value always stands in the stream.
    None,
    /// The value never stands in the stream.
    Constant,
    /// The initial value where there is none in the stream.
    Default,
    /// The previous value where there is none in the stream.
    Copy,
    /// The previous value plus one where there is none in the stream.
    Increment,
    /// The difference to the previous value stands in the stream.
    Delta,
    /// The end of the value, as far as it differs from the previous value.
    Tail,
}

impl OperatorKind {
    /// Returns the operator with this element name.
    fn of_element(name: &str) -> Option<Self> {
        Some(match name {
            "constant" => Self::Constant,
            "default" => Self::Default,
            "copy" => Self::Copy,
            "increment" => Self::Increment,
            "delta" => Self::Delta,
            "tail" => Self::Tail,
            _ => return None,
        })
    }

    /// Name of the element, or `none`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Constant => "constant",
            Self::Default => "default",
            Self::Copy => "copy",
            Self::Increment => "increment",
            Self::Delta => "delta",
            Self::Tail => "tail",
        }
    }

    /// True if the operator reads and writes a previous value.
    #[must_use]
    pub const fn uses_dictionary(self) -> bool {
        matches!(
            self,
            Self::Copy | Self::Increment | Self::Delta | Self::Tail
        )
    }

    /// True if a field of this presence takes a bit in the presence map (section 10.5.1).
    #[must_use]
    pub const fn takes_bit(self, optional: bool) -> bool {
        match self {
            Self::None | Self::Delta => false,
            Self::Constant => optional,
            Self::Default | Self::Copy | Self::Increment | Self::Tail => true,
        }
    }
}

/// The scope of a dictionary (section 6.3.1).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Dictionary {
    /// Shared by all.
    #[default]
    Global,
    /// One for each template.
    Template,
    /// One for each application type.
    Type,
    /// One for each name.
    User(String),
}

/// An initial value, of the type of its field. Decimals are normalised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Initial {
    /// Of an integer.
    Int(i128),
    /// Of a decimal.
    Decimal(Decimal),
    /// Of a string or byte vector.
    Text(Vec<u8>),
}
