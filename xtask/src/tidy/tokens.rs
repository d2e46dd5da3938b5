//! Rust source as words, `::` and punctuation: enough to find the paths in it.

/// A piece of source that is not a comment and not a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// An identifier, a keyword or a number.
    Word(&'a str),
    /// `::`
    PathSep,
    /// Any other character but white space.
    Mark(char),
}

/// Returns the tokens of `text`, each with the number of its line, without items under
/// `#[cfg(test)]` or `#[test]`.
pub(super) fn tokens(text: &str) -> Vec<(usize, Token<'_>)> {
    let mut all = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(c) = rest.chars().next() {
        let len = skipped(rest);
        let len = if len > 0 {
            len
        } else if rest.starts_with("::") {
            all.push((line, Token::PathSep));
            2
        } else if is_word(c) {
            let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            all.push((line, Token::Word(&rest[..len])));
            len
        } else {
            all.push((line, Token::Mark(c)));
            c.len_utf8()
        };
        line += rest[..len].matches('\n').count();
        rest = &rest[len..];
    }
    without_tests(&all)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the bytes of white space, of a comment or of a literal at the front; 0 if there is none.
fn skipped(text: &str) -> usize {
    if let Some(c) = text.chars().next().filter(|c| c.is_whitespace()) {
        return c.len_utf8();
    }
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment(text);
    }
    if let Some(rest) = text.strip_prefix('\'') {
        return 1 + character(rest);
    }
    let prefix = text.len() - text.trim_start_matches(['b', 'c', 'r']).len();
    let (is_raw, rest) = (text[..prefix].ends_with('r'), &text[prefix..]);
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    match rest[hashes..].strip_prefix('"') {
        Some(inside) if prefix <= 2 && is_raw => {
            let end = format!("\"{}", &rest[..hashes]);
            let len = inside.find(&end).map_or(inside.len(), |at| at + end.len());
            prefix + hashes + 1 + len
        }
        Some(inside) if prefix <= 1 && hashes == 0 => prefix + 1 + string(inside),
        _ => 0,
    }
}

/// Returns the bytes of a block comment, including nested ones.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    loop {
        let rest = &text[at..];
        let (Some(open), Some(close)) = (rest.find("/*").or(Some(usize::MAX)), rest.find("*/"))
        else {
            return text.len();
        };
        depth = if open < close { depth + 1 } else { depth - 1 };
        at += open.min(close) + 2;
        if depth == 0 {
            return at;
        }
    }
}

/// Returns the bytes of a string after its first quotation mark, including the last one.
fn string(inside: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in inside.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    inside.len()
}

/// Returns the bytes of a character after its first quotation mark, or of a lifetime's name.
fn character(inside: &str) -> usize {
    let mut chars = inside.char_indices();
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((_, escaped))) => {
            let behind = 1 + escaped.len_utf8();
            inside[behind..]
                .find('\'')
                .map_or(behind, |at| behind + at + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => inside.find(|c| !is_word(c)).unwrap_or(inside.len()),
    }
}

/// Returns the tokens without the items that only tests have.
fn without_tests<'a>(all: &[(usize, Token<'a>)]) -> Vec<(usize, Token<'a>)> {
    const CFG_TEST: &[Token<'_>] = &[
        Token::Mark('#'),
        Token::Mark('['),
        Token::Word("cfg"),
        Token::Mark('('),
        Token::Word("test"),
        Token::Mark(')'),
        Token::Mark(']'),
    ];
    const TEST: &[Token<'_>] = &[
        Token::Mark('#'),
        Token::Mark('['),
        Token::Word("test"),
        Token::Mark(']'),
    ];
    let mut kept = Vec::new();
    let mut rest = all;
    while let Some((first, behind)) = rest.split_first() {
        let attribute = [CFG_TEST, TEST].into_iter().find(|attribute| {
            rest.len() >= attribute.len() && rest.iter().zip(*attribute).all(|((_, a), b)| a == b)
        });
        if let Some(attribute) = attribute {
            rest = &rest[attribute.len()..];
            rest = &rest[item(rest)..];
        } else {
            kept.push(*first);
            rest = behind;
        }
    }
    kept
}

/// Returns the tokens of the item at the front, with its other attributes.
fn item(tokens: &[(usize, Token<'_>)]) -> usize {
    let is_use = |(_, token): &(usize, Token<'_>)| *token == Token::Word("use");
    let is_use = tokens.iter().take(5).any(is_use);
    let mut depth = 0_u32;
    for (at, (_, token)) in tokens.iter().enumerate() {
        match token {
            Token::Mark('{' | '(' | '[') => depth += 1,
            // The item was the last one of a block.
            Token::Mark('}' | ')' | ']') if depth == 0 => return at,
            Token::Mark(close @ ('}' | ')' | ']')) => {
                depth -= 1;
                if depth == 0 && *close == '}' && !is_use {
                    return at + 1;
                }
            }
            Token::Mark(';') if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let words = tokens(text).into_iter().map(|(_, token)| match token {
            Token::Word(word) => word.to_owned(),
            Token::PathSep => "::".to_owned(),
            Token::Mark(c) => c.to_string(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_are_left_out() {
        let text = "a /* x /* y */ z */ b // c\n d \"e\\\"f\" g r#\"h\"i\"# j b'k' l";
        assert_eq!(words(text), "a b d g j b l");
        assert_eq!(words("'\\'' 'x' &'a str"), "& str");
        assert_eq!(words("br\"a\\\" b c\"d\" crate::e"), "b crate :: e");
        assert_eq!(words("/* never closed"), "");
        assert_eq!(words("\"never closed"), "");
    }

    #[test]
    fn tokens_know_their_lines() {
        let found = tokens("a\n/*\n*/ b\n\"\n\" c");
        let lines: Vec<_> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 3, 5]);
    }

    #[test]
    fn items_of_tests_are_left_out() {
        assert_eq!(words("a; #[cfg(test)] use b::{c, d}; e"), "a ; e");
        let module = "#[cfg(test)] #[allow(x)] mod tests { fn f() { g[0]; } } h";
        assert_eq!(words(module), "h");
        assert_eq!(words("a #[test] fn f() { b; } c"), "a c");
        assert_eq!(words("{ a #[cfg(test)] b }"), "{ a }");
        assert_eq!(words("#[cfg(not(test))] a"), "# [ cfg ( not ( test ) ) ] a");
    }
}
