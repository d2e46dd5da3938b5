//! The theme without CSS variables: as presentation attributes in its light colours, and as CSS.

use std::sync::LazyLock;

use super::THEME;

/// The names of a block with their values.
type Looks = Vec<(&'static str, String)>;

/// The rules for charts, in order and in light colours: a class, or `text`, and its properties.
static RULES: LazyLock<Vec<(&str, Looks)>> = LazyLock::new(|| {
    let light = colours(0);
    let rules = rules(".chart text").split('}');
    let rules = rules.filter_map(|rule| rule.split_once('{'));
    let rules = rules.map(|(selector, block)| {
        let class = selector
            .rsplit([' ', '.', '\n'])
            .find(|name| !name.is_empty());
        let looks = declarations(block).map(|(name, value)| (name, literal_of(value, &light)));
        (class.unwrap_or_default(), looks.collect())
    });
    rules.collect()
});

/// Returns the class attribute, and the presentation attributes of these classes, in light colours.
/// CSS overrides them if it is supported.
pub(super) fn class(classes: &str, is_text: bool) -> String {
    let mut attributes: Vec<(&str, &str)> = Vec::new();
    for (class, looks) in RULES.iter() {
        let is_own = classes.split(' ').any(|own| own == *class);
        if !(is_own || is_text && *class == "text") {
            continue;
        }
        for (name, value) in looks {
            attributes.retain(|(known, _)| known != name);
            attributes.push((name, value));
        }
    }
    let looks = attributes
        .iter()
        .map(|(name, value)| format!(" {name}=\"{value}\""));
    format!("class=\"{classes}\"{}", looks.collect::<String>())
}

/// Returns the theme as CSS without variables, with the light colours, and the dark ones for
/// viewers that prefer them.
pub(super) fn literal() -> String {
    let rules = rules(".chart {");
    let rules = format!("{rules}.chart .paper {{ fill: var(--paper); }}\n");
    let [light, dark] = [0, 1].map(|block| literal_of(&rules, &colours(block)));
    format!("{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n")
}

/// Returns the theme from this rule on.
fn rules(first: &str) -> &'static str {
    let at = THEME.find(first).and_then(|at| THEME.get(at..));
    at.unwrap_or_default()
}

/// Returns the variables of the light block, number 0, or of the dark one.
fn colours(block: usize) -> Looks {
    let block = THEME.split(":root {").nth(block + 1);
    let block = block.and_then(|block| block.split_once('}'));
    let pairs = declarations(block.map_or("", |(block, _)| block));
    pairs
        .map(|(name, value)| (name, value.to_owned()))
        .collect()
}

fn declarations(block: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let declarations = block.split(';');
    declarations.filter_map(|declaration| declaration.trim().split_once(": "))
}

/// Returns the text with the values of its variables.
fn literal_of(text: &str, colours: &Looks) -> String {
    let replace =
        |text: String, (name, value): &(&str, String)| text.replace(&format!("var({name})"), value);
    colours.iter().fold(text.to_owned(), replace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_and_theme_have_the_same_colours() {
        let literal = literal();
        let (light, dark) = literal.split_once("@media").unwrap();
        assert!(!literal.contains("var("), "{literal}");
        for (class, looks) in RULES.iter() {
            let place = if *class == "text" { " " } else { "." };
            let rule = light.split(&format!("{place}{class} {{")).nth(1).unwrap();
            let rule = rule.split_once('}').unwrap().0;
            for (name, value) in looks {
                assert!(
                    rule.contains(&format!("{name}: {value}")),
                    "{class} {name}: {rule}"
                );
            }
        }
        assert_eq!(RULES.len(), 19, "{RULES:?}");
        assert!(dark.contains("#14181f") && !light.contains("#14181f"));
    }

    #[test]
    fn the_last_class_says_what_an_element_looks_like() {
        let looks = class("line s1 dash", false);
        assert_eq!(
            looks,
            "class=\"line s1 dash\" fill=\"none\" stroke-width=\"1.75\" \
             stroke-linejoin=\"round\" stroke-linecap=\"round\" stroke-dasharray=\"5 4\" \
             stroke=\"#c2571a\""
        );
        assert_eq!(class("tick", true), "class=\"tick\" fill=\"#5b6577\"");
        assert_eq!(class("label", true), "class=\"label\" fill=\"#1c2330\"");
    }
}
