//! Typed messages: an order that is read into values and built from values, and the code for both.
//!
//! Each turn begins with an order that is read and built again. All of its fields must come out as
//! they went in, so that no contestant can leave a value out. Lines are counted in the sources,
//! between two marks.

mod derived;
mod generated;

use crate::contest::{Contest, Contestant, Figure};
use crate::peers::{Peers, Recipe, number, source};
use anyhow::{Context, Result, ensure};
use fanfare_fix::codec::Decoder;
use fanfare_peers::Program;
use std::fs;
use std::process::Command;

/// The marks around the code of a user.
const BEGIN: &str = "// typed: begin";
const END: &str = "// typed: end";

/// A generator that cannot take part.
const ABSENT: &str = "easyfix-messages: its build script makes messages over FIXT.1.1 only, and \
                      this order is of FIX 4.4";

/// An order, read and built.
///
/// # Errors
/// A file cannot be read or written, or marks no lines.
pub(super) fn contest(peers: &Peers, order: &[u8]) -> Result<Contest> {
    let file = peers.file("typed.fix");
    fs::write(&file, order)?;
    let mut contest = Contest {
        id: "fix_typed".to_owned(),
        title: "FIX: order, typed".to_owned(),
        what: "An order is read from its bytes, whose BodyLength(9) and CheckSum(10) are checked \
               (by QuickFIX/J the latter only), into a struct of ClOrdID, Symbol, Side, \
               TransactTime, OrderQty, OrdType, Price and TimeInForce, each of the library's own \
               type; and it is built from this struct, with header and trailer. Lines are the code \
               of a user for both: imports, the struct, both functions, and what a build script \
               has, without blank lines and comments. Numbers are doubles in QuickFIX, decimals in \
               Fanfare; fixlite has an integer and a decimal of a fixed scale."
            .to_owned(),
        source: "benches/src/parse/typed.rs, benches/peers",
        figures: vec![
            Figure::lower("read", "ns"),
            Figure::lower("build", "ns"),
            Figure::lower("code", "lines"),
        ],
        contestants: vec![
            generated::contestant(order.to_vec())?,
            derived::contestant(order.to_vec())?,
        ],
        absent: vec![ABSENT.to_owned()],
    };
    let mut join = |name, how: &str, code: &str, mut command: Command| {
        command.arg("typed").arg(&file);
        let code = fs::read_to_string(source(code))?;
        let joined = theirs(name, how, lines(&[&code])?, command, order.to_vec());
        contest.contestants.push(joined);
        anyhow::Ok(())
    };
    match &peers.quickfix {
        Ok(program) => {
            let how = format!("{}, its classes of FIX 4.4, -O2", peers.quickfix_version);
            join("QuickFIX C++", &how, "quickfix.cpp", Command::new(program))?;
        }
        Err(absent) => contest.absent.push(absent.clone()),
    }
    match &peers.java {
        Ok(java) => {
            let how = "2.3.2, its classes of FIX 4.4, warmed up";
            join("QuickFIX/J", how, "QuickFixJ.java", java.quickfixj())?;
        }
        Err(absent) => contest.absent.push(absent.clone()),
    }
    Ok(contest)
}

/// A program that prints the message that it built from what it read, and the time of each.
fn theirs(
    name: &'static str,
    how: &str,
    lines: f64,
    command: Command,
    order: Vec<u8>,
) -> Contestant {
    let recipe = Recipe::from(command);
    Contestant::new(name, how, move || {
        let mut program = Program::start(&mut recipe.command())?;
        let line = program.line()?;
        let built = line
            .strip_prefix("message ")
            .context("a message was expected")?;
        same(built.as_bytes(), &order)?;
        let read = number(&mut program, "read")?;
        let build = number(&mut program, "build")?;
        program.close();
        Ok(vec![read, build, lines])
    })
}

/// Checks that a message has all fields of the order, in any order. Length and sum are the same
/// then, too.
fn same(built: &[u8], order: &[u8]) -> Result<()> {
    let (built, order) = (fields(built)?, fields(order)?);
    ensure!(built == order, "{built:?} was built, not {order:?}");
    Ok(())
}

/// Tags and values of a message, by tag.
fn fields(message: &[u8]) -> Result<Vec<(u32, String)>> {
    let mut decoder = Decoder::new();
    let message = decoder.decode(message)?;
    let text = |value| String::from_utf8_lossy(value).into_owned();
    let fields = message.fields().map(|field| (field.tag, text(field.value)));
    let mut fields: Vec<_> = fields.collect();
    fields.sort();
    Ok(fields)
}

/// Lines of code between marks in sources, without blank lines and comments.
///
/// # Errors
/// There are none, or marks do not come in pairs.
fn lines(sources: &[&str]) -> Result<f64> {
    let (mut count, mut is_marked) = (0_u32, false);
    for line in sources.iter().flat_map(|source| source.lines()) {
        match line.trim() {
            mark @ (BEGIN | END) => {
                ensure!(is_marked == (mark == END), "{mark} comes twice");
                is_marked = !is_marked;
            }
            line => {
                let is_code = !line.is_empty() && !line.starts_with("//");
                count += u32::from(is_marked && is_code);
            }
        }
    }
    ensure!(
        count > 0 && !is_marked,
        "{count} lines, no end: {is_marked}"
    );
    Ok(f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_between_marks() {
        let source = format!("a\n  {BEGIN}\nb\n\n/// Says c.\n// d\n  e\n  {END}\nf\n");
        assert_eq!(lines(&[&source]).unwrap(), 2.0);
        assert_eq!(lines(&[&source, "g", &source]).unwrap(), 4.0);
        for wrong in ["a", BEGIN, END, &format!("{source}{END}")] {
            lines(&[wrong]).unwrap_err();
        }
    }

    #[test]
    fn a_message_without_a_value_is_not_the_order() {
        let order = crate::parse::messages::order().unwrap();
        same(&order, &order).unwrap();
        let mut buf = [0; 64];
        let other = fanfare_fix::codec::Encoder::new(&mut buf, b"FIX.4.4", b"D");
        let range = other.finish().unwrap();
        same(&buf[range], &order).unwrap_err();
    }
}
