//! A report as one self-contained HTML page: styles and charts are inline, without scripts.

use std::fmt::Write;

use crate::figures::Environment;
use crate::plot::{THEME, escape};

const STYLE: &str = include_str!("page.css");

/// A page under construction; its parts appear in the order in which they are added.
#[derive(Debug)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// Creates a page with a title and a line below it.
    pub fn new(title: &str, subtitle: &str) -> Self {
        let (title, subtitle) = (escape(title), escape(subtitle));
        let body = format!("<header><h1>{title}</h1><p>{subtitle}</p></header>\n");
        Self { title, body }
    }

    /// Begins a part of a page that has several: its name, and a description.
    pub fn part(&mut self, name: &str, text: &str) -> &mut Self {
        let (name, text) = (escape(name), escape(text));
        self.push(&format!(
            "<header class=\"part\"><h2>{name}</h2><p>{text}</p></header>\n"
        ))
    }

    /// Adds the key figures, side by side: name, value, unit.
    pub fn tiles(&mut self, tiles: &[(&str, String, &str)]) -> &mut Self {
        self.push("<section class=\"tiles\">");
        for (name, value, unit) in tiles {
            self.tile(name, value, unit, "");
        }
        self.push("</section>\n")
    }

    /// Adds figures as [`tiles`](Self::tiles), each with its reference value: name, value, unit,
    /// note.
    pub fn tiles_with_notes(&mut self, tiles: &[(String, String, &str, String)]) -> &mut Self {
        self.push("<section class=\"tiles\">");
        for (name, value, unit, note) in tiles {
            self.tile(name, value, unit, note);
        }
        self.push("</section>\n")
    }

    fn tile(&mut self, name: &str, value: &str, unit: &str, note: &str) {
        let [name, value, unit, note] = [name, value, unit, note].map(escape);
        self.push(&format!(
            "<div class=\"tile\"><span class=\"name\">{name}</span>\
             <span class=\"value\">{value}<small> {unit}</small></span>"
        ));
        if !note.is_empty() {
            self.push(&format!("<span class=\"name\">{note}</span>"));
        }
        self.push("</div>");
    }

    /// Adds warnings for the reader of the figures, if there are any.
    pub fn warnings(&mut self, warnings: &[String]) -> &mut Self {
        if warnings.is_empty() {
            return self;
        }
        self.push("<section class=\"warnings\" role=\"note\"><h2>Warnings</h2><ul>");
        for warning in warnings {
            self.push(&format!("<li>{}</li>", escape(warning)));
        }
        self.push("</ul></section>\n")
    }

    /// Adds a chart of [`crate::plot`] under a heading, with a sentence on how to read it.
    pub fn chart(&mut self, heading: &str, caption: &str, svg: &str) -> &mut Self {
        let (heading, caption) = (escape(heading), escape(caption));
        self.push(&format!(
            "<section><h2>{heading}</h2><figure>{svg}<figcaption>{caption}</figcaption></figure>\
             </section>\n"
        ))
    }

    /// Adds a table: head cells (none for no head), then rows. The first column is text, the others
    /// are numbers.
    pub fn table(&mut self, heading: &str, head: &[&str], rows: &[Vec<String>]) -> &mut Self {
        self.push(&format!("<section><h2>{}</h2><table>", escape(heading)));
        if !head.is_empty() {
            self.push("<thead><tr>");
            for cell in head {
                self.push(&format!("<th scope=\"col\">{}</th>", escape(cell)));
            }
            self.push("</tr></thead>");
        }
        self.push("<tbody>");
        for row in rows {
            self.push("<tr>");
            for (i, cell) in row.iter().enumerate() {
                let cell = escape(cell);
                self.push(&match i {
                    0 => format!("<th scope=\"row\">{cell}</th>"),
                    _ => format!("<td>{cell}</td>"),
                });
            }
            self.push("</tr>");
        }
        self.push("</tbody></table></section>\n")
    }

    /// Adds the place and time of the measurement.
    pub fn environment(&mut self, environment: &Environment) -> &mut Self {
        let Environment {
            cpu,
            cores,
            kernel,
            version,
            date,
        } = environment;
        self.push("<section><h2>Environment</h2><dl>");
        let cores = cores.to_string();
        let entries = [
            ("Processor", cpu),
            ("Cores", &cores),
            ("Kernel", kernel),
            ("Fanfare", version),
            ("Date", date),
        ];
        for (name, value) in entries {
            self.push(&format!(
                "<div><dt>{name}</dt><dd>{}</dd></div>",
                escape(value)
            ));
        }
        self.push("</dl></section>\n")
    }

    /// Returns the whole page.
    pub fn to_html(&self) -> String {
        let Self { title, body } = self;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\">\
             <title>{title}</title>\n<style>\n{THEME}{STYLE}</style></head>\n\
             <body><main>\n{body}</main></body></html>\n"
        )
    }

    fn push(&mut self, markup: &str) -> &mut Self {
        // Writing to a String cannot fail.
        let _ = self.body.write_str(markup);
        self
    }
}
