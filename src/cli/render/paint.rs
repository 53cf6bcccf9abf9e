//! Colours. They repeat what a marker or a word already says.

use anstyle::{AnsiColor, Style};

/// A style for a kind of text.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct Paint(Style);

/// Errors.
pub(in crate::cli) const ERROR: Paint = Paint(AnsiColor::Red.on_default().bold());
/// Dangers.
pub(in crate::cli) const DANGER: Paint = Paint(AnsiColor::Red.on_default().bold());
/// What comes.
pub(in crate::cli) const ADDED: Paint = Paint(AnsiColor::Green.on_default());
/// What changes, and warnings.
pub(in crate::cli) const CHANGED: Paint = Paint(AnsiColor::Yellow.on_default());
/// What goes.
pub(in crate::cli) const REMOVED: Paint = Paint(AnsiColor::Red.on_default());
/// What stays.
pub(in crate::cli) const QUIET: Paint = Paint(Style::new().dimmed());
/// What a section is about.
pub(in crate::cli) const HEADING: Paint = Paint(Style::new().bold());

impl Paint {
    /// The text in this style.
    pub(in crate::cli) fn on(self, text: &str) -> String {
        format!("{}{text}{}", self.0.render(), self.0.render_reset())
    }

    /// The text in this style where colours are wanted.
    pub(in crate::cli) fn when(self, wanted: bool, text: &str) -> String {
        if wanted {
            self.on(text)
        } else {
            text.to_owned()
        }
    }
}
