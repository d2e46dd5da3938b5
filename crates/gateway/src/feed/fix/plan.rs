//! The form of a template's messages in one version of FIX, resolved when the template is first
//! met: a step for each field, and for each level of the message the order of its slots.

use super::rules::{Filler, Rules, filler, is_own, other_tag};
use super::value::{Conv, Source};
use fanfare_fast::program::{FieldId, FieldKind, TemplateProgram};
use fanfare_fast::{Fields, Program, Value};
use fanfare_fix::dict::Layout;
use fanfare_fix::tag;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The plan of a template in a version.
#[derive(Debug)]
pub(super) struct Plan {
    /// The steps by field, ascending.
    steps: Box<[Step]>,
    /// The blocks, the body first.
    pub(super) blocks: Box<[Block]>,
    /// The number of values that are moved from one place to others.
    pub(super) hands: usize,
    /// The fields without a place: those left out, and those moved to other tags.
    pub(super) left: String,
    pub(super) moved: String,
    /// Whether a value that did not fit was reported, and a message that did not.
    pub(super) told: [Cell<bool>; 2],
}

/// The treatment of a field.
#[derive(Debug)]
pub(super) struct Step {
    field: FieldId,
    pub(super) target: Target,
    pub(super) hands: Vec<Deferred>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Target {
    /// The field is ignored: header and trailer belong to the session, and fields without a tag are
    /// not part of FIX.
    Nothing,
    /// The field has no place in this version.
    Leave,
    Value {
        slot: usize,
        tag: u32,
        conv: Conv,
    },
    Group {
        slot: usize,
        block: usize,
    },
}

/// A value that is kept for another place.
#[derive(Debug)]
pub(super) struct Deferred {
    pub(super) place: usize,
    pub(super) tag: u32,
    pub(super) conv: Conv,
}

/// A level of the message.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The slots in the order of sending.
    pub(super) slots: Box<[Slot]>,
    pub(super) order: Order,
}

/// The relation between the order of the slots of a level and that of its fields in the template.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The order does not matter, as in a body.
    #[default]
    Free,
    /// The orders are the same.
    Same,
    Other,
}

/// A field, or a group with its count.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) tag: u32,
    /// `tag=`.
    pub(super) text: Box<[u8]>,
    pub(super) required: bool,
    /// The value that fills it if the feed has none.
    pub(super) from: From,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum From {
    Nowhere,
    /// A value of another place.
    Handed(usize),
    /// A text, if the level has the slot that this one needs.
    Text(&'static [u8], Option<u32>),
}

/// The reason why no message of a template can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unfit {
    /// The version has no message of this MsgType(35).
    Type,
    /// The version requires this field, and the template does not have it.
    Required(u32),
    /// The same template occurs in several places of the message.
    Twice,
}

/// The templates that the dynamic references of a message resolve to.
pub(super) type Refs = BTreeMap<FieldId, Vec<u32>>;

/// Collects the dynamic references of a message.
pub(super) fn refs(fields: Fields<'_>, refs: &mut Refs) {
    for (field, value) in fields {
        match value {
            Value::Template(template, inside) => {
                let known = refs.entry(field.id()).or_default();
                if !known.contains(&template.index()) {
                    known.push(template.index());
                }
                self::refs(inside, refs);
            }
            Value::Group(inside) => self::refs(inside, refs),
            Value::Sequence(entries) => entries.for_each(|entry| self::refs(entry, refs)),
            _ => {}
        }
    }
}

impl Plan {
    /// Makes the plan of `template`, whose messages are of `msg_type`.
    pub(super) fn new(
        program: &Program,
        template: &TemplateProgram,
        msg_type: &[u8],
        refs: &Refs,
        rules: &Rules,
    ) -> Result<Self, Unfit> {
        let scope = match rules.dictionary.body(msg_type) {
            Some(layout) => Scope::Standard(layout),
            // A user-defined type, for consumers that agreed to user-defined fields.
            None if rules.user_tags.is_some() && msg_type.starts_with(b"U") => Scope::Free,
            None => return Err(Unfit::Type),
        };
        let mut compiler = Compiler {
            program,
            refs,
            rules,
            steps: BTreeMap::new(),
            blocks: vec![Block::default()],
            root: Vec::new(),
            hands: 0,
            left: String::new(),
            moved: String::new(),
        };
        compiler.root = compiler.flat(program.template_fields(template));
        let root = compiler.root.clone();
        let body = compiler.level(&root, scope, &[], true)?;
        compiler.put(0, body);
        Ok(Self {
            steps: compiler.steps.into_values().collect(),
            blocks: compiler.blocks.into(),
            hands: compiler.hands,
            left: compiler.left,
            moved: compiler.moved,
            told: Default::default(),
        })
    }

    /// Returns the treatment of a field. The fields of a template are numbered consecutively.
    #[inline]
    pub(super) fn step(&self, field: FieldId) -> Option<&Step> {
        let first = self.steps.first()?.field.index();
        let near = field.index().wrapping_sub(first);
        match self.steps.get(near) {
            Some(step) if step.field == field => Some(step),
            _ => {
                let at = self.steps.binary_search_by_key(&field, |step| step.field);
                self.steps.get(at.ok()?)
            }
        }
    }
}

/// The fields that a level may have.
#[derive(Clone, Copy)]
enum Scope<'a> {
    Standard(Layout<'a>),
    /// Any field, under tags of the user-defined range.
    Free,
}

/// A value of the message that the version has in the entries of a group.
#[derive(Clone, Copy)]
struct Pushed {
    tag: u32,
    place: usize,
}

/// A slot before its index is known.
struct Draft {
    tag: u32,
    /// The sort key: fields of the version first, in its order, then the user-defined ones.
    order: (bool, usize),
    from: From,
    source: Option<(FieldId, Option<usize>)>,
}

struct Compiler<'a> {
    program: &'a Program,
    refs: &'a Refs,
    rules: &'a Rules,
    steps: BTreeMap<FieldId, Step>,
    /// The blocks. The first index is the body's, which is made last.
    blocks: Vec<Block>,
    root: Vec<FieldId>,
    hands: usize,
    left: String,
    moved: String,
}

impl<'a> Compiler<'a> {
    /// Returns the fields of a level, in which FAST's groups and references are expanded, because
    /// FIX has no counterpart.
    fn flat(&self, fields: &[FieldId]) -> Vec<FieldId> {
        let mut flat = Vec::new();
        for &id in fields {
            match self.program.field(id).kind() {
                FieldKind::Group => flat.extend(self.flat(self.program.children(id))),
                FieldKind::TemplateRef => {
                    for &template in self.refs.get(&id).into_iter().flatten() {
                        let template = self.program.templates().get(template as usize);
                        let fields = template.map(|t| self.program.template_fields(t));
                        flat.extend(self.flat(fields.unwrap_or_default()));
                    }
                }
                _ => flat.push(id),
            }
        }
        flat
    }

    fn tag(&self, id: FieldId) -> Option<u32> {
        self.program.field(id).tag()
    }

    fn has_tag(&self, fields: &[FieldId], tag: u32) -> bool {
        fields.iter().any(|id| self.tag(*id) == Some(tag))
    }

    fn name(&self, id: FieldId) -> String {
        let field = self.program.field(id);
        format!("{}({})", field.name(), field.tag().unwrap_or_default())
    }

    fn leaves(&mut self, id: FieldId) {
        let name = self.name(id);
        join(&mut self.left, &name);
    }

    /// Plans one level with everything inside it.
    fn level(
        &mut self,
        fields: &[FieldId],
        scope: Scope<'a>,
        pushed: &[Pushed],
        is_body: bool,
    ) -> Result<Block, Unfit> {
        let mut drafts: Vec<Draft> = Vec::new();
        let mut down = Vec::new();
        for (at, &id) in fields.iter().enumerate() {
            let Some(tag) = self.tag(id) else {
                self.step(id, Target::Nothing)?;
                continue;
            };
            if self.program.field(id).is_sequence() {
                let group = self.group(id, tag, scope, &down)?;
                drafts.extend(
                    group.map(|(tag, block)| {
                        draft(scope, tag, Some((id, Some(block))), From::Nowhere)
                    }),
                );
                continue;
            }
            if self.is_length(tag, fields) {
                self.step(id, Target::Nothing)?;
                continue;
            }
            match self.target(id, tag, scope, fields, is_body) {
                Some(target) => {
                    let source = Some((id, None));
                    drafts.push(draft(scope, target, source, From::Nowhere));
                }
                None if is_own(tag) => self.step(id, Target::Nothing)?,
                None if is_body && self.goes_down(tag, scope, &fields[at + 1..]) => {
                    self.step(id, Target::Nothing)?;
                    let place = self.hand(id, tag);
                    down.push(Pushed { tag, place });
                }
                None => {
                    self.step(id, Target::Leave)?;
                    self.leaves(id);
                }
            }
        }
        self.fill_in(&mut drafts, scope, pushed)?;
        self.finish(drafts, scope, is_body)
    }

    /// Adds slots that the level requires and the feed has elsewhere.
    fn fill_in(
        &mut self,
        drafts: &mut Vec<Draft>,
        scope: Scope<'a>,
        pushed: &[Pushed],
    ) -> Result<(), Unfit> {
        let Scope::Standard(layout) = scope else {
            return Ok(());
        };
        for pushed in pushed {
            let is_there = drafts.iter().any(|draft| draft.tag == pushed.tag);
            if !is_there && layout.has(pushed.tag) {
                drafts.push(draft(scope, pushed.tag, None, From::Handed(pushed.place)));
            }
        }
        for tag in layout.required() {
            let from = match filler(tag) {
                None => From::Nowhere,
                Some(Filler::Text(text, beside)) => From::Text(text, beside),
                Some(Filler::Field(other)) => {
                    let source = self.root.iter().find(|id| self.tag(**id) == Some(other));
                    let source = source.copied();
                    source.map_or(From::Nowhere, |id| From::Handed(self.hand(id, tag)))
                }
            };
            match drafts.iter_mut().find(|draft| draft.tag == tag) {
                Some(draft) if draft.from == From::Nowhere => draft.from = from,
                Some(_) => {}
                None if from == From::Nowhere => return Err(Unfit::Required(tag)),
                None => drafts.push(draft(scope, tag, None, from)),
            }
        }
        Ok(())
    }

    /// Builds the slots of the drafts.
    fn finish(
        &mut self,
        mut drafts: Vec<Draft>,
        scope: Scope<'a>,
        is_body: bool,
    ) -> Result<Block, Unfit> {
        let sources: Vec<FieldId> = drafts.iter().filter_map(|d| Some(d.source?.0)).collect();
        drafts.sort_by_key(|draft| draft.order);
        let required: Vec<u32> = match scope {
            Scope::Standard(layout) => layout.required().collect(),
            Scope::Free => Vec::new(),
        };
        let mut slots: Vec<Slot> = Vec::new();
        for draft in drafts {
            // Two fields of a template may have one slot, which the first that is present takes.
            let place = slots.iter().position(|slot| slot.tag == draft.tag);
            let slot = place.unwrap_or(slots.len());
            if place.is_none() {
                slots.push(Slot {
                    tag: draft.tag,
                    text: format!("{}=", draft.tag).into_bytes().into(),
                    required: required.contains(&draft.tag),
                    from: draft.from,
                });
            }
            match draft.source {
                Some((id, Some(block))) => self.step(id, Target::Group { slot, block })?,
                Some((id, None)) => {
                    let (tag, conv) = (draft.tag, self.conv(id, draft.tag));
                    self.step(id, Target::Value { slot, tag, conv })?;
                }
                None => {}
            }
        }
        let places = sources
            .iter()
            .filter_map(|id| match self.steps.get(id)?.target {
                Target::Value { slot, .. } | Target::Group { slot, .. } => Some(slot),
                _ => None,
            });
        let order = match (is_body, places.is_sorted_by(|a, b| a < b)) {
            (true, _) => Order::Free,
            (false, true) => Order::Same,
            (false, false) => Order::Other,
        };
        Ok(Block {
            slots: slots.into(),
            order,
        })
    }

    /// Returns the tag under which a field is sent, or `None` if it has no place.
    fn target(
        &mut self,
        id: FieldId,
        tag: u32,
        scope: Scope<'a>,
        beside: &[FieldId],
        is_body: bool,
    ) -> Option<u32> {
        if is_framing(tag) {
            return None;
        }
        let mapped = self.rules.mapped(tag);
        if let Scope::Standard(layout) = scope {
            let wanted = mapped.unwrap_or(tag);
            if layout.has(wanted) && !is_data_length(wanted) {
                self.moves(id, wanted);
                return Some(wanted);
            }
            let other = other_tag(tag, is_body);
            let other = other.filter(|o| layout.has(*o) && !self.has_tag(beside, *o));
            if let Some(other) = other.filter(|_| mapped.is_none()) {
                self.moves(id, other);
                return Some(other);
            }
        }
        let user = match mapped {
            Some(mapped) => Some(mapped).filter(|m| *m >= tag::USER_TAGS),
            None => self.rules.user_tag(tag),
        };
        self.moves(id, user?);
        user
    }

    fn moves(&mut self, id: FieldId, to: u32) {
        if self.tag(id) != Some(to) {
            let name = format!("{} as {to}", self.name(id));
            join(&mut self.moved, &name);
        }
    }

    /// Returns whether the version has the field in the entries of a later group that does not have
    /// it itself.
    fn goes_down(&self, tag: u32, scope: Scope<'a>, behind: &[FieldId]) -> bool {
        let Scope::Standard(layout) = scope else {
            return false;
        };
        behind.iter().any(|id| {
            let field = self.program.field(*id);
            let group = field.tag().filter(|_| field.is_sequence());
            let group = group.and_then(|count| layout.group(count));
            let inside = self.flat(self.program.children(*id));
            group.is_some_and(|group| group.has(tag)) && !self.has_tag(&inside, tag)
        })
    }

    /// Plans the entries of a sequence. Returns the tag of the count, and the block, or `None` if
    /// they have no place.
    fn group(
        &mut self,
        id: FieldId,
        tag: u32,
        scope: Scope<'a>,
        pushed: &[Pushed],
    ) -> Result<Option<(u32, usize)>, Unfit> {
        let wanted = self.rules.mapped(tag).unwrap_or(tag);
        let standard = match scope {
            Scope::Standard(layout) => layout.group(wanted),
            Scope::Free => None,
        };
        let inside = self.flat(self.program.children(id));
        let (tag, scope) = match (standard, self.rules.user_tag(tag)) {
            (Some(layout), _) => (wanted, Scope::Standard(layout)),
            (None, Some(tag)) => (tag, Scope::Free),
            (None, None) => {
                self.step(id, Target::Leave)?;
                self.leaves(id);
                return Ok(None);
            }
        };
        self.moves(id, tag);
        let block = self.blocks.len();
        self.blocks.push(Block::default());
        match self.level(&inside, scope, pushed, false) {
            Ok(made) => {
                self.put(block, made);
                Ok(Some((tag, block)))
            }
            Err(Unfit::Required(missing)) => {
                self.step(id, Target::Leave)?;
                let name = format!("{}, whose entries have no {missing}", self.name(id));
                join(&mut self.left, &name);
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    fn put(&mut self, place: usize, block: Block) {
        if let Some(room) = self.blocks.get_mut(place) {
            *room = block;
        }
    }

    /// Returns whether the field is the length of a data field, which is written with the data.
    fn is_length(&self, tag: u32, beside: &[FieldId]) -> bool {
        let data = fanfare_wire::DataFields::standard().data_tag(tag);
        data.is_some_and(|data| self.has_tag(beside, data))
    }

    fn conv(&self, id: FieldId, tag: u32) -> Conv {
        let source = match self.program.field(id).kind() {
            FieldKind::Int(_) | FieldKind::Decimal => Source::Number,
            _ => Source::Text,
        };
        Conv::new(&self.rules.dictionary, tag, source, self.rules.precision)
    }

    /// Keeps the value of a field for another place.
    fn hand(&mut self, id: FieldId, tag: u32) -> usize {
        let hands = self.steps.get(&id).map(|step| &step.hands[..]);
        let known = hands.into_iter().flatten().find(|hand| hand.tag == tag);
        if let Some(hand) = known {
            return hand.place;
        }
        let place = self.hands;
        self.hands += 1;
        let conv = self.conv(id, tag);
        let step = self.steps.entry(id).or_insert(Step {
            field: id,
            target: Target::Nothing,
            hands: Vec::new(),
        });
        step.hands.push(Deferred { place, tag, conv });
        place
    }

    fn step(&mut self, field: FieldId, target: Target) -> Result<(), Unfit> {
        let step = self.steps.entry(field).or_insert(Step {
            field,
            target: Target::Nothing,
            hands: Vec::new(),
        });
        if step.target != Target::Nothing && step.target != target {
            return Err(Unfit::Twice);
        }
        step.target = target;
        Ok(())
    }
}

fn draft(
    scope: Scope<'_>,
    tag: u32,
    source: Option<(FieldId, Option<usize>)>,
    from: From,
) -> Draft {
    let place = match scope {
        Scope::Standard(layout) => layout.position(tag),
        Scope::Free => Some(0),
    };
    let order = (place.is_none(), place.unwrap_or(tag as usize));
    Draft {
        tag,
        order,
        from,
        source,
    }
}

fn join(list: &mut String, name: &str) {
    let separator = if list.is_empty() { "" } else { ", " };
    let _ = write!(list, "{separator}{name}");
}

/// Returns whether a tag frames a message or has its type, and so is never a field of the body.
const fn is_framing(tag: u32) -> bool {
    matches!(
        tag,
        tag::BEGIN_STRING | tag::BODY_LENGTH | tag::CHECK_SUM | tag::MSG_TYPE
    )
}

fn is_data_length(tag: u32) -> bool {
    fanfare_wire::DataFields::standard().data_tag(tag).is_some()
}
