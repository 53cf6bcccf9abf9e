//! `validate`: every problem of every file, offline.

use super::Context;
use super::args::{self, Findings, Format};
use super::error::CliError;
use super::exit::Exit;
use super::files::Sources;
use super::render::rows::counted;
use super::render::snippet::Snippets;
use super::render::{markdown, paint, text};
use crate::manifest::{Manifest, Problem, Warning};
use serde_json::json;
use std::fmt::Write;

pub(super) fn run(context: &Context, args: &args::Validate) -> Result<Exit, CliError> {
    let sources = Sources::read(&args.paths)?;
    let (manifests, problems) = match sources.parse() {
        Ok(manifests) => (manifests, Vec::new()),
        Err(problems) => (Vec::new(), problems),
    };
    let only = super::connect::namespace(&context.global)?;
    let manifests = super::files::select(manifests, only.as_ref().filter(|_| problems.is_empty()))?;
    let warnings: Vec<&Warning> = manifests.iter().flat_map(Manifest::warnings).collect();
    match (args.format, context.out.format) {
        (Some(Findings::Json), _) | (None, Format::Json) => {
            let mut body = json!({
                "valid": problems.is_empty(),
                "manifests": manifests.iter().map(|manifest| json!({
                    "namespace": manifest.namespace().as_str(),
                    "levels": manifest.levels().len(),
                    "sha256": manifest.sha256(),
                })).collect::<Vec<_>>(),
                "problems": problems,
                "warnings": warnings,
            });
            if !problems.is_empty() {
                body["error"] = CliError::Manifest(problems.clone()).json();
            }
            context.out.document("validate", body)?;
        }
        (Some(Findings::Github), _) => {
            let annotations = github(&problems, &warnings);
            if !annotations.is_empty() {
                context.out.answer(&annotations)?;
            }
        }
        (None, Format::Markdown) => {
            let lines = problems
                .iter()
                .map(|problem| format!("- {}", markdown::safe(&problem.to_string())));
            let valid = manifests
                .iter()
                .map(|manifest| format!("- {}", valid(manifest, markdown::code)));
            let lines: Vec<String> = lines.chain(valid).collect();
            context.out.answer(&lines.join("\n"))?;
        }
        (Some(Findings::Text), _) | (None, Format::Text) => {
            let colours = context.out.colours_stdout();
            let mut snippets = Snippets::new(&sources.files);
            let mut lines: Vec<String> = problems
                .iter()
                .map(|problem| finding(problem, &mut snippets, colours))
                .collect();
            lines.extend(manifests.iter().map(|manifest| valid(manifest, text::safe)));
            context.out.answer(&lines.join("\n"))?;
            for warning in &warnings {
                context.out.note(&format!("warning: {warning}"));
            }
        }
    }
    if problems.is_empty() {
        return Ok(Exit::Done);
    }
    context
        .out
        .note(&counted(problems.len() as u64, "problem", "problems"));
    Ok(Exit::BadManifest)
}

fn valid(manifest: &Manifest, show: fn(&str) -> String) -> String {
    let levels = counted(manifest.levels().len() as u64, "level", "levels");
    format!("{}: valid, {levels}", show(manifest.namespace().as_str()))
}

/// `file:line:column: path: message (hint)`, and the line of the file with a mark below.
fn finding(problem: &Problem, snippets: &mut Snippets<'_>, colours: bool) -> String {
    let line = problem.to_string();
    match snippets.of(problem) {
        Some(snippet) => format!("{line}\n{}", paint::QUIET.when(colours, &snippet)),
        None => line,
    }
}

/// Workflow commands: <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>.
fn github(problems: &[Problem], warnings: &[&Warning]) -> String {
    let errors = problems.iter().map(|problem| {
        let hint = problem
            .hint
            .as_ref()
            .map_or(String::new(), |hint| format!(" ({hint})"));
        let message = format!("{}{hint}", problem.message);
        let place = (problem.file.as_deref(), problem.line, problem.column);
        annotation("error", place, &problem.path, &message)
    });
    let warnings = warnings.iter().map(|warning| {
        let place = (warning.file.as_deref(), warning.line, warning.column);
        annotation("warning", place, &warning.path, &warning.message)
    });
    errors.chain(warnings).collect::<Vec<_>>().join("\n")
}

fn annotation(
    severity: &str,
    (file, line, column): (Option<&str>, Option<u32>, Option<u32>),
    path: &str,
    message: &str,
) -> String {
    let properties = [
        file.map(|file| format!("file={}", github_property(file))),
        line.map(|line| format!("line={line}")),
        column.map(|column| format!("col={column}")),
    ];
    let properties: Vec<String> = properties.into_iter().flatten().collect();
    let message = if path.is_empty() {
        message.to_owned()
    } else {
        format!("{path}: {message}")
    };
    format!(
        "::{severity} {}::{}",
        properties.join(","),
        github_data(&message)
    )
}

fn github_data(text: &str) -> String {
    text::safe(text).replace('%', "%25")
}

fn github_property(text: &str) -> String {
    let mut property = String::new();
    for c in text.chars() {
        match c {
            '%' | '\r' | '\n' | ':' | ',' => {
                let _ = write!(property, "%{:02X}", u32::from(c));
            }
            // GitHub finds the file by its path, so what only looks odd stays as it is. What acts
            // on a terminal is in no path worth an annotation.
            c if acts(c) => property.extend(c.escape_unicode()),
            c => property.push(c),
        }
    }
    property
}

/// Whether a character does something to the terminal or to the text around it: controls, line
/// separators, and what sets the direction of writing.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
