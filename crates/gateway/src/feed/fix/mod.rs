//! The conversion of a feed's messages to FIX messages that are valid in each version, by the
//! dictionary of that version: types, times and groups. Fields without a place in a version are
//! left out or moved.

mod convert;
mod plan;
mod rules;
mod value;

use crate::fanout::versions::{COUNT, VERSIONS};
use crate::feed::config::Feed;
use crate::feed::feed_notice::{FeedNotice, TemplateNotice};
use crate::notice::{Notice, Notices};
pub(crate) use convert::Tally;
use convert::{Converter, Unmade};
use fanfare_fast::program::{FieldId, FieldKind, Op, Reset, TemplateProgram};
use fanfare_fast::template::OperatorKind;
use fanfare_fast::{Fields, MessageView, Program, Value};
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_fix::{msg_type, tag};
use fanfare_wire::text::Escaped;
use plan::{Plan, Refs, Unfit};
use rules::Rules;
use std::sync::Arc;

/// The most plans that are kept for pairs of a template and the message's own MsgType(35).
const MOST_TYPED: usize = 1_024;

/// The longest MsgType(35) of a message that is fanned out.
const MOST_TYPE: usize = 8;

/// The purpose of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The consumers.
    Data,
    /// The session of the exchange: MsgType(35) 0 to 5, or A.
    Session(u8),
    /// No session, because the message has no field of FIX, such as FAST's Reset.
    Empty,
    /// The end of the feed.
    Done,
}

/// The result of converting a message to a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made<'a> {
    /// MsgType(35), and the fields between header and trailer.
    Body(&'a [u8], &'a [u8]),
    /// None: the message lacks a field that the version requires, which others of its template may
    /// have, or has an entry of a book that the version cannot express.
    Lacking,
    /// None, and sessions of the version miss nothing: so it is for every message of its template,
    /// or all entries of this one are of types that the version does not have.
    Never,
}

/// The converter of a feed's messages to FIX.
pub(crate) struct Fix {
    program: Arc<Program>,
    templates: Box<[Template]>,
    versions: Box<[PerVersion]>,
    /// The MsgType(35) of messages whose template has none.
    default_type: Box<[u8]>,
    /// The MsgType(35) of the current message, if it differs from its template's.
    own_type: Vec<u8>,
    converter: Converter,
}

/// The properties of a template.
struct Template {
    kind: Kind,
    msg_type: TypeOf,
    /// Whether it has dynamic references, so that its contents vary by message.
    is_dynamic: bool,
}

/// The source of the MsgType(35) of a template's messages.
enum TypeOf {
    Constant(Box<[u8]>),
    Message,
    Configuration,
}

/// The state of a version.
struct PerVersion {
    rules: Rules,
    plans: Plans,
}

/// The plans of the templates met so far.
#[derive(Default)]
struct Plans {
    by_template: Box<[Option<Planned>]>,
    typed: Vec<(u32, Box<[u8]>, Planned)>,
    /// The templates with dynamic references that were reported. Their messages have a plan each.
    told: Vec<u32>,
}

type Planned = Result<Box<Plan>, Unfit>;

/// The template that ends a feed, as in [`fanfare_dds::distribute::Distribution`].
const DONE: &str = "Done";

impl Fix {
    /// Creates a converter for the templates of a feed. `dictionary` returns that of a version.
    pub(crate) fn new(
        feed: &Feed,
        program: &Arc<Program>,
        mut dictionary: impl FnMut(Version) -> Arc<Dictionary>,
    ) -> Self {
        let templates = program.templates();
        let versions = VERSIONS.map(|version| PerVersion {
            rules: Rules::new(version, dictionary(version), feed),
            plans: Plans::default(),
        });
        Self {
            templates: templates
                .iter()
                .map(|t| Template::new(program, t))
                .collect(),
            program: Arc::clone(program),
            versions: versions.into(),
            default_type: feed.msg_type.as_bytes().into(),
            own_type: Vec::with_capacity(MOST_TYPE),
            converter: Converter::default(),
        }
    }

    /// Returns the purpose of a message.
    pub(crate) fn kind(&self, message: MessageView<'_>) -> Kind {
        let Some(template) = self.templates.get(message.template().index() as usize) else {
            return Kind::Empty;
        };
        match (&template.msg_type, template.kind) {
            (TypeOf::Message, Kind::Data) => {
                let value = find(message.fields(), tag::MSG_TYPE);
                match value.and_then(|value| value.as_bytes()) {
                    Some(&[byte]) if msg_type::is_session(&[byte]) => Kind::Session(byte),
                    _ => Kind::Data,
                }
            }
            (_, kind) => kind,
        }
    }

    /// Converts a message to a version. The first message without a valid form in the version is
    /// reported. [`Fix::tally`] counts what was left out.
    pub(crate) fn convert(
        &mut self,
        version: usize,
        message: MessageView<'_>,
        notices: &Notices,
    ) -> Made<'_> {
        self.converter.tally = Tally::default();
        self.made(version, message, notices).unwrap_or(Made::Never)
    }

    fn made(
        &mut self,
        version: usize,
        message: MessageView<'_>,
        notices: &Notices,
    ) -> Option<Made<'_>> {
        let index = message.template().index();
        let template = self.templates.get(index as usize)?;
        let msg_type = match &template.msg_type {
            TypeOf::Constant(constant) => constant,
            TypeOf::Configuration => &self.default_type,
            TypeOf::Message => {
                self.own_type.clear();
                let value = find(message.fields(), tag::MSG_TYPE)?;
                fanfare_fast::fix::write_value(value, &mut self.own_type);
                &self.own_type[..]
            }
        };
        let PerVersion { rules, plans } = self.versions.get_mut(version)?;
        let met = Met {
            program: &self.program,
            message,
            msg_type,
            rules,
        };
        let is_own = matches!(template.msg_type, TypeOf::Message);
        let mut made = None;
        let planned = match (template.is_dynamic, is_own) {
            (true, _) => made.insert(plans.of_message(met, notices)),
            (false, true) => plans.typed(met, notices)?,
            (false, false) => plans.plan(met, notices)?,
        };
        let plan = planned.as_ref().ok()?;
        let unmade = self
            .converter
            .convert(plan, &rules.dictionary, message)
            .err();
        rules.tell(
            plan,
            message,
            self.converter.sample.as_ref(),
            unmade,
            notices,
        );
        Some(match unmade {
            Some(Unmade::Beyond) => Made::Never,
            Some(_) => Made::Lacking,
            None => Made::Body(msg_type, self.converter.body()),
        })
    }

    /// Returns the counts of what was left out of the last message.
    pub(crate) fn tally(&self) -> Tally {
        self.converter.tally
    }
}

/// A message that needs a plan.
#[derive(Clone, Copy)]
struct Met<'a> {
    program: &'a Program,
    message: MessageView<'a>,
    msg_type: &'a [u8],
    rules: &'a Rules,
}

impl Plans {
    /// Returns the plan of a template, which is made when the template is first met.
    fn plan(&mut self, met: Met<'_>, notices: &Notices) -> Option<&Planned> {
        if self.by_template.is_empty() {
            self.by_template = met.program.templates().iter().map(|_| None).collect();
        }
        let index = met.message.template().index() as usize;
        let place = self.by_template.get_mut(index)?;
        Some(place.get_or_insert_with(|| met.plan(&Refs::new(), Some(notices))))
    }

    /// Returns the plan of a template as `plan` does, for templates whose messages have types of
    /// their own.
    fn typed(&mut self, met: Met<'_>, notices: &Notices) -> Option<&Planned> {
        let index = met.message.template().index();
        let is_it =
            |(of, known, _): &(u32, Box<[u8]>, Planned)| *of == index && known[..] == *met.msg_type;
        let at = match self.typed.iter().position(is_it) {
            Some(at) => at,
            None if self.typed.len() >= MOST_TYPED => return None,
            None => {
                let planned = met.plan(&Refs::new(), Some(notices));
                self.typed.push((index, met.msg_type.into(), planned));
                self.typed.len() - 1
            }
        };
        self.typed.get(at).map(|(_, _, planned)| planned)
    }

    /// Returns the plan of one message, according to its dynamic references.
    fn of_message(&mut self, met: Met<'_>, notices: &Notices) -> Planned {
        let mut refs = Refs::new();
        plan::refs(met.message.fields(), &mut refs);
        let index = met.message.template().index();
        let is_told = self.told.contains(&index);
        if !is_told {
            self.told.push(index);
        }
        let planned = met.plan(&refs, Some(notices).filter(|_| !is_told));
        if let Ok(plan) = &planned {
            plan.told.iter().for_each(|told| told.set(is_told));
        }
        planned
    }
}

impl Met<'_> {
    /// Makes a plan, and reports what it leaves out.
    fn plan(&self, refs: &Refs, notices: Option<&Notices>) -> Planned {
        let template = self.message.template();
        let planned = Plan::new(self.program, template, self.msg_type, refs, self.rules);
        let what = match &planned {
            Ok(plan) if plan.left.is_empty() && plan.moved.is_empty() => None,
            Ok(plan) => Some(TemplateNotice::Fields {
                left: plan.left.clone(),
                moved: plan.moved.clone(),
            }),
            Err(unfit) => Some(TemplateNotice::Unfit(self.rules.why(unfit, self.msg_type))),
        };
        if let (Some(what), Some(notices)) = (what, notices) {
            notices.send(self.rules.notice(self.message, what));
        }
        planned.map(Box::new)
    }
}

impl Rules {
    fn why(&self, unfit: &Unfit, msg_type: &[u8]) -> String {
        let msg_type = Escaped::fields(msg_type);
        match unfit {
            Unfit::Type => format!("the version has no message of MsgType(35) {msg_type}"),
            Unfit::Required(tag) => format!("the feed has no {}", self.name(*tag)),
            Unfit::Twice => "one template stands in several places of the message".to_owned(),
        }
    }

    fn name(&self, tag: u32) -> String {
        let name = self.dictionary.field_name(tag).unwrap_or("field");
        format!("{name}({tag})")
    }

    fn notice(&self, message: MessageView<'_>, what: TemplateNotice) -> Notice {
        Notice::Feed(FeedNotice::Template {
            version: self.version.name(),
            template: message.template().name().to_owned(),
            what,
        })
    }

    /// Reports the first value of a template that did not fit, and the first message.
    fn tell(
        &self,
        plan: &Plan,
        message: MessageView<'_>,
        sample: Option<&(u32, Vec<u8>)>,
        unmade: Option<Unmade>,
        notices: &Notices,
    ) {
        let [value_told, message_told] = &plan.told;
        if let Some((tag, value)) = sample
            && !value_told.replace(true)
        {
            let field = self.name(*tag);
            let value = Escaped::fields(value).to_string();
            notices.send(self.notice(message, TemplateNotice::Value { field, value }));
        }
        let why = match unmade {
            None | Some(Unmade::Beyond) => return,
            Some(_) if message_told.get() => return,
            Some(Unmade::Field(0)) => "no field of it is FIX's".to_owned(),
            Some(Unmade::Field(tag)) => format!("it has no {}", self.name(tag)),
            Some(Unmade::Entry(tag)) => {
                format!("an entry of a book in it has no valid {}", self.name(tag))
            }
        };
        message_told.set(true);
        notices.send(self.notice(message, TemplateNotice::Lacking(why)));
    }
}

impl Template {
    fn new(program: &Program, template: &TemplateProgram) -> Self {
        let fields = program.template_fields(template);
        let mut look = Look::default();
        look.fields(program, fields, true);
        let msg_type = match (look.constant, look.has_type) {
            (Some(constant), _) => TypeOf::Constant(constant),
            (None, true) => TypeOf::Message,
            (None, false) => TypeOf::Configuration,
        };
        let kind = match &msg_type {
            TypeOf::Constant(t) if msg_type::is_session(t) => {
                Kind::Session(t.first().copied().unwrap_or_default())
            }
            _ if template.name() == DONE => Kind::Done,
            _ if template.reset() == Reset::All => Kind::Empty,
            _ if !look.tells && !look.is_dynamic => Kind::Empty,
            _ => Kind::Data,
        };
        Self {
            kind,
            // A referenced template may have the type too.
            msg_type: match msg_type {
                TypeOf::Configuration if look.is_dynamic => TypeOf::Message,
                other => other,
            },
            is_dynamic: look.is_dynamic,
        }
    }
}

/// The properties of a template's fields.
#[derive(Default)]
struct Look {
    constant: Option<Box<[u8]>>,
    has_type: bool,
    is_dynamic: bool,
    /// Whether it has a field outside header and trailer.
    tells: bool,
}

impl Look {
    fn fields(&mut self, program: &Program, fields: &[FieldId], top: bool) {
        for &id in fields {
            let field = program.field(id);
            self.is_dynamic |= field.kind() == FieldKind::TemplateRef;
            match field.tag() {
                Some(tag::MSG_TYPE) if top => {
                    self.has_type = true;
                    self.constant = constant(program, id);
                }
                Some(tag) => self.tells |= !tag::is_header(tag) && !tag::is_trailer(tag),
                None => {}
            }
            let is_group = field.kind() == FieldKind::Group;
            self.fields(program, program.children(id), top && is_group);
        }
    }
}

/// Returns the text that a field has in every message.
fn constant(program: &Program, id: FieldId) -> Option<Box<[u8]>> {
    match program.op(id) {
        Op::Text(op) if op.operator == OperatorKind::Constant && !op.optional => {
            Some(program.text(op.initial?).into())
        }
        _ => None,
    }
}

/// Returns the first value of a tag outside sequences.
pub(crate) fn find(fields: Fields<'_>, tag: u32) -> Option<Value<'_>> {
    fields.into_iter().find_map(|(field, value)| match value {
        Value::Group(inside) | Value::Template(_, inside) => find(inside, tag),
        Value::Absent => None,
        _ => Some(value).filter(|_| field.tag() == Some(tag)),
    })
}

const _: () = assert!(COUNT == VERSIONS.len());

#[cfg(test)]
mod tests;
