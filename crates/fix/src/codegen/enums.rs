//! Writers of enums of the values that fields may have.

use super::lines::{Lines, literal};
use super::model::Enum;

pub(super) fn write(item: &Enum, out: &mut Lines) {
    let Enum { name, title, .. } = item;
    let lifetime = lifetime(item);
    out.gap();
    out.line(&format!("/// Values of {title}."));
    out.line("#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]");
    out.open(&format!("pub enum {name}{lifetime} {{"));
    for variant in &item.variants {
        out.line(&format!(
            "/// `{}`.",
            variant.value.escape_debug().to_string().replace('`', "'")
        ));
        out.line(&format!("{},", variant.name));
    }
    if item.open {
        out.line("/// A value that the dictionary does not list.");
        out.line("Other(&'a str),");
    }
    out.close("}");
    out.gap();
    out.open(&format!(
        "impl<'a> typed::Listed<'a> for {name}{lifetime} {{"
    ));
    parse(item, out);
    wire(item, out);
    out.close("}");
}

/// Returns the generics of an enum's type.
pub(super) fn lifetime(item: &Enum) -> &'static str {
    match item.open {
        true => "<'a>",
        false => "",
    }
}

fn parse(item: &Enum, out: &mut Lines) {
    out.line("#[inline]");
    out.function("fn parse", &["value: &'a [u8]"], "Option<Self>");
    out.open("Some(match value {");
    for variant in &item.variants {
        out.arm(&literal(&variant.value), &format!("Self::{}", variant.name));
    }
    match item.open {
        true => out.line("_ => Self::Other(::core::str::from_utf8(value).ok()?),"),
        false => out.line("_ => return None,"),
    }
    out.close("})");
    out.close("}");
}

fn wire(item: &Enum, out: &mut Lines) {
    out.gap();
    out.line("#[inline]");
    out.function("fn wire", &["&self"], "&[u8]");
    out.open("match self {");
    for variant in &item.variants {
        out.arm(&format!("Self::{}", variant.name), &literal(&variant.value));
    }
    if item.open {
        out.line("Self::Other(value) => value.as_bytes(),");
    }
    out.close("}");
    out.close("}");
}
