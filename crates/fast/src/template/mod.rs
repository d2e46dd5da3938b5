//! Templates as the XML declares them: a validated tree, before it becomes a program.

mod encoding;
mod initial;
pub mod limits;
pub(crate) mod rules;
mod xml;

pub use encoding::decode;
pub(crate) use initial::OperandType;
pub use xml::schema::Deviations;

use crate::value::{Decimal, IntType, TextType};

/// A name with its namespace (section 7), which is empty if none is declared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Name {
    /// The namespace URI.
    pub ns: String,
    /// The local name.
    pub local: String,
}

/// A place in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
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
    /// The name, in the `templateNs` namespace.
    pub name: Name,
    /// The identifier on the wire. A template without one can only be referred to by name.
    pub id: Option<u32>,
    /// Whether a message of this template clears the dictionaries first.
    pub reset: bool,
    /// The application type of the template.
    pub type_ref: Option<Name>,
    /// The contents.
    pub body: Vec<Instruction>,
    /// The place of the declaration.
    pub position: Position,
}

/// A field or a template reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    /// The name of the field. For a reference, it is the name of the template, or empty if the
    /// reference is dynamic.
    pub name: Name,
    /// The `id` attribute.
    pub id: Option<String>,
    /// Whether the presence is `optional`.
    pub optional: bool,
    /// The kind.
    pub kind: Kind,
    /// The place of the declaration.
    pub position: Position,
}

/// The kind of an instruction.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// An integer.
    Int(IntType, Operator),
    /// A decimal with one operator, or none.
    Decimal(Operator),
    /// A decimal with operators of its own for exponent and mantissa.
    SplitDecimal {
        /// The operator of the exponent, an int32.
        exponent: Operator,
        /// The operator of the mantissa, an int64.
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
        /// The contents of an entry.
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
    /// The members, all of [`Kind::Int`] without operators, and the number of bits of each.
    pub members: Vec<(Instruction, u32)>,
    /// The operator. It applies to all bits together as a number, the first member topmost.
    pub operator: Operator,
}

impl BitGroup {
    /// Returns the number of bits of all members, or the largest number if there are more.
    #[must_use]
    pub fn width(&self) -> u32 {
        let bits = self.members.iter().map(|(_, bits)| *bits);
        bits.fold(0, u32::saturating_add)
    }
}

/// The instructions inside a group or a sequence.
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
    /// The name; `None` if it is implicit.
    pub name: Option<Name>,
    /// The `id` attribute.
    pub id: Option<String>,
    /// The operator.
    pub operator: Operator,
}

/// A field operator with its context.
#[derive(Debug, Clone, PartialEq)]
pub struct Operator {
    /// The kind of the operator.
    pub kind: OperatorKind,
    /// The dictionary of the previous value.
    pub dictionary: Dictionary,
    /// The key in the dictionary, if it is not the field's name.
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
    /// No operator: the value is always in the stream.
    None,
    /// The constant operator: the value is never in the stream.
    Constant,
    /// The default operator: the initial value, if there is none in the stream.
    Default,
    /// The copy operator: the previous value, if there is none in the stream.
    Copy,
    /// The increment operator: the previous value plus one, if there is none in the stream.
    Increment,
    /// The delta operator: the difference from the previous value is in the stream.
    Delta,
    /// The tail operator: the end of the value, as far as it differs from the previous value, is in
    /// the stream.
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

    /// Returns the name of the element, or `none`.
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

    /// Returns true if the operator reads and writes a previous value.
    #[must_use]
    pub const fn uses_dictionary(self) -> bool {
        matches!(
            self,
            Self::Copy | Self::Increment | Self::Delta | Self::Tail
        )
    }

    /// Returns true if a field of this presence takes a bit in the presence map (section 10.5.1).
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
    /// One dictionary for all.
    #[default]
    Global,
    /// One dictionary for each template.
    Template,
    /// One dictionary for each application type.
    Type,
    /// One dictionary for each name.
    User(String),
}

/// An initial value, of the type of its field. Decimals are normalised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Initial {
    /// An integer.
    Int(i128),
    /// A decimal.
    Decimal(Decimal),
    /// A string or byte vector.
    Text(Vec<u8>),
}
