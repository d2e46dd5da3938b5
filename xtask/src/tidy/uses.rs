//! The paths that a file names, and its re-exports.

use super::tokens::{Token, tokens};

/// A path as written: `super::state::Session`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path<'a> {
    pub(super) segments: Vec<&'a str>,
    pub(super) line: usize,
}

/// The names in a file.
#[derive(Debug, Default)]
pub(super) struct Uses<'a> {
    /// Paths in the code, and in `use` declarations that are not re-exports.
    pub(super) paths: Vec<Path<'a>>,
    /// Names that the module re-exports, and their paths.
    pub(super) exports: Vec<(&'a str, Path<'a>)>,
    /// Paths whose last segment a `use` gives another name than `_`.
    pub(super) renamed: Vec<Path<'a>>,
}

/// Returns the names in a file.
pub(super) fn uses(text: &str) -> Uses<'_> {
    let tokens = tokens(text);
    let (mut uses, mut rest, mut is_public) = (Uses::default(), &tokens[..], false);
    while let Some(((_, token), behind)) = rest.split_first() {
        match token {
            Token::Word("use") => {
                let mut tree = Tree {
                    rest: behind,
                    found: Vec::new(),
                };
                tree.branch(&[]);
                rest = tree.rest;
                for (name, path) in &tree.found {
                    if *name != "_" && path.segments.last() != Some(name) {
                        uses.renamed.push(path.clone());
                    }
                }
                if is_public {
                    uses.exports.extend(tree.found);
                } else {
                    uses.paths
                        .extend(tree.found.into_iter().map(|(_, path)| path));
                }
            }
            Token::Word("pub") => {
                is_public = true;
                rest = behind_visibility(behind);
                continue;
            }
            Token::Word(_) => {
                let (path, behind) = path(rest);
                uses.paths.extend((path.segments.len() > 1).then_some(path));
                rest = behind;
            }
            _ => rest = behind,
        }
        is_public = false;
    }
    uses
}

type Tokens<'t, 'a> = &'t [(usize, Token<'a>)];

/// Returns the tokens after the `(crate)` of a `pub`.
fn behind_visibility<'t, 'a>(tokens: Tokens<'t, 'a>) -> Tokens<'t, 'a> {
    let end = match tokens.first() {
        Some((_, Token::Mark('('))) => tokens.iter().position(|(_, t)| *t == Token::Mark(')')),
        _ => None,
    };
    &tokens[end.map_or(0, |end| end + 1)..]
}

/// Returns the words with `::` between them at the front, and the tokens after them.
fn path<'t, 'a>(mut tokens: Tokens<'t, 'a>) -> (Path<'a>, Tokens<'t, 'a>) {
    let line = tokens.first().map_or(0, |(line, _)| *line);
    let mut segments = Vec::new();
    while let [(_, Token::Word(word)), behind @ ..] = tokens {
        segments.push(*word);
        tokens = behind;
        match tokens {
            [(_, Token::PathSep), behind @ ..]
                if matches!(behind.first(), Some((_, Token::Word(_)))) =>
            {
                tokens = behind;
            }
            _ => break,
        }
    }
    (Path { segments, line }, tokens)
}

/// A `use` declaration during parsing.
struct Tree<'t, 'a> {
    rest: Tokens<'t, 'a>,
    found: Vec<(&'a str, Path<'a>)>,
}

impl<'a> Tree<'_, 'a> {
    /// Parses `a::b as c`, `a::*` or `a::{...}` after `front`.
    fn branch(&mut self, front: &[&'a str]) {
        self.eat(Token::PathSep);
        let (mut path, rest) = path(self.rest);
        self.rest = rest;
        path.segments.splice(0..0, front.iter().copied());
        self.eat(Token::PathSep);
        if self.eat(Token::Mark('{')) {
            while !self.rest.is_empty() && !self.eat(Token::Mark('}')) {
                let before = self.rest.len();
                self.branch(&path.segments);
                self.eat(Token::Mark(','));
                if self.rest.len() == before {
                    self.rest = &[];
                }
            }
            return;
        }
        if self.eat(Token::Mark('*')) {
            path.segments.push("*");
        }
        if path.segments.last() == Some(&"self") && path.segments.len() > 1 {
            path.segments.pop();
        }
        let Some(mut name) = path.segments.last().copied() else {
            return;
        };
        if self.eat(Token::Word("as"))
            && let [(_, Token::Word(alias)), behind @ ..] = self.rest
        {
            (name, self.rest) = (alias, behind);
        }
        self.found.push((name, path));
    }

    fn eat(&mut self, token: Token<'_>) -> bool {
        match self.rest {
            [(_, first), behind @ ..] if *first == token => {
                self.rest = behind;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let paths = uses(text).paths.into_iter();
        paths.map(|path| path.segments.join("::")).collect()
    }

    fn exports(text: &str) -> Vec<String> {
        let exports = uses(text).exports.into_iter();
        let text = |(name, path): (&str, Path<'_>)| format!("{name}={}", path.segments.join("::"));
        exports.map(text).collect()
    }

    #[test]
    fn trees_become_paths() {
        let text = "use super::a::{self, B as C, d::{E, f::*}}; use ::g::h as _;";
        let expected = [
            "super::a",
            "super::a::B",
            "super::a::d::E",
            "super::a::d::f::*",
            "g::h",
        ];
        assert_eq!(paths(text), expected);
        let renamed = uses(text).renamed;
        assert_eq!(renamed.len(), 1);
        assert_eq!(renamed[0].segments, ["super", "a", "B"]);
        assert_eq!(exports("pub use a::{self, b as c};"), ["a=a", "c=a::b"]);
    }

    #[test]
    fn a_re_export_is_not_a_use() {
        for text in [
            "pub use a::b;",
            "pub(crate) use a::b;",
            "pub(in crate::c) use a::b;",
        ] {
            assert_eq!(paths(text), [""; 0]);
            assert_eq!(exports(text), ["b=a::b"]);
        }
        assert_eq!(paths("pub struct A; use b::C;"), ["b::C"]);
    }

    #[test]
    fn paths_in_the_code_are_found() {
        let text = "fn f(x: super::A) -> crate::b::C { d::e::<F>(x)?; g; $crate::h!() }";
        assert_eq!(paths(text), ["super::A", "crate::b::C", "d::e", "crate::h"]);
    }

    #[test]
    fn a_path_knows_its_line_and_bad_source_ends() {
        assert_eq!(uses("\n\nuse a::b;").paths[0].line, 3);
        assert_eq!(paths("use a::{b, +"), ["a::b", "a"]);
    }
}
