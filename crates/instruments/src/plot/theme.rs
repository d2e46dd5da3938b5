//! The theme without CSS variables: as presentation attributes in its light colours, and as CSS.

use super::THEME;

/// The presentation attributes of each class, in light colours. CSS overrides them where it is
/// supported.
const ATTRIBUTES: [(&str, &[(&str, &str)]); 18] = [
    ("label", &[("fill", "#1c2330")]),
    ("strong", &[("fill", "#1c2330"), ("font-weight", "600")]),
    ("grid", &[("stroke", "#e3e7ee"), ("stroke-width", "1")]),
    (
        "frame",
        &[
            ("stroke", "#b4bccb"),
            ("stroke-width", "1"),
            ("fill", "none"),
        ],
    ),
    ("line", &[("fill", "none"), ("stroke-width", "1.75")]),
    ("dash", &[("stroke-dasharray", "5 4")]),
    ("band", &[("stroke", "none"), ("fill-opacity", "0.16")]),
    (
        "halo",
        &[
            ("paint-order", "stroke"),
            ("stroke", "#ffffff"),
            ("stroke-width", "4"),
        ],
    ),
    ("s0", &[("stroke", "#2563c9")]),
    ("s1", &[("stroke", "#c2571a")]),
    ("s2", &[("stroke", "#0e8074")]),
    ("s3", &[("stroke", "#a3307e")]),
    ("s4", &[("stroke", "#6a7180")]),
    ("f0", &[("fill", "#2563c9")]),
    ("f1", &[("fill", "#c2571a")]),
    ("f2", &[("fill", "#0e8074")]),
    ("f3", &[("fill", "#a3307e")]),
    ("f4", &[("fill", "#6a7180")]),
];

/// The class attribute, and the presentation attributes of these classes.
pub(super) fn class(classes: &str, is_text: bool) -> String {
    let mut attributes: Vec<(&str, &str)> = Vec::new();
    if is_text {
        attributes.push(("fill", "#5b6577"));
    }
    for (class, looks) in ATTRIBUTES {
        if !classes.split(' ').any(|own| own == class) {
            continue;
        }
        for &(name, value) in looks {
            attributes.retain(|(known, _)| *known != name);
            attributes.push((name, value));
        }
    }
    let looks = attributes
        .iter()
        .map(|(name, value)| format!(" {name}=\"{value}\""));
    format!("class=\"{classes}\"{}", looks.collect::<String>())
}

/// The theme as CSS without variables, with the light colours, and the dark ones where they are
/// preferred.
pub(super) fn literal() -> String {
    let mut blocks = THEME.split(":root {").skip(1);
    let colours = |block: Option<&str>| -> Vec<(String, String)> {
        let block = block
            .and_then(|block| block.split_once('}'))
            .map_or("", |(block, _)| block);
        let pairs = block
            .split(';')
            .filter_map(|pair| pair.trim().split_once(": "));
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    };
    let (light, dark) = (colours(blocks.next()), colours(blocks.next()));
    let rules = THEME
        .find(".chart {")
        .and_then(|at| THEME.get(at..))
        .unwrap_or_default();
    let rules = format!("{rules}.chart .paper {{ fill: var(--paper); }}\n");
    let with = |colours: &[(String, String)]| {
        colours.iter().fold(rules.clone(), |rules, (name, value)| {
            rules.replace(&format!("var({name})"), value)
        })
    };
    format!(
        "{}@media (prefers-color-scheme: dark) {{\n{}}}\n",
        with(&light),
        with(&dark)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_and_theme_have_the_same_colours() {
        let literal = literal();
        let (light, dark) = literal.split_once("@media").unwrap();
        assert!(!literal.contains("var("), "{literal}");
        for (class, looks) in ATTRIBUTES {
            let rule = light.split(&format!(".{class} {{")).nth(1).unwrap();
            let rule = rule.split_once('}').unwrap().0;
            for (name, value) in looks {
                let value = value.trim_end_matches("px");
                assert!(
                    rule.contains(&format!("{name}: {value}")),
                    "{class} {name}: {rule}"
                );
            }
        }
        assert!(dark.contains("#14181f") && !light.contains("#14181f"));
    }

    #[test]
    fn the_last_class_says_what_an_element_looks_like() {
        let looks = class("line s1 dash", false);
        assert_eq!(
            looks,
            "class=\"line s1 dash\" fill=\"none\" stroke-width=\"1.75\" stroke-dasharray=\"5 4\" \
             stroke=\"#c2571a\""
        );
        assert_eq!(class("tick", true), "class=\"tick\" fill=\"#5b6577\"");
        assert_eq!(class("label", true), "class=\"label\" fill=\"#1c2330\"");
    }
}
