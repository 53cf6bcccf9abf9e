//! The line of a file that a problem is in, with a mark below. Only a part of a long line is shown.
//!
//! Problems come in the order of their places, so a file is walked once however many there are.

use super::text::safe;
use crate::manifest::Problem;
use std::collections::HashMap;
use std::fmt::Write;

/// The most characters of a line that are shown on either side of a problem.
const AROUND: usize = 50;

/// The texts of some files, each as far as it was walked.
pub(in crate::cli) struct Snippets<'a>(HashMap<&'a str, Walk<'a>>);

impl<'a> Snippets<'a> {
    /// Of files by name. One that is not text has no lines to show.
    pub(in crate::cli) fn new(files: &'a [(String, Vec<u8>)]) -> Snippets<'a> {
        let mut walks = HashMap::new();
        for (name, bytes) in files {
            if let Ok(text) = std::str::from_utf8(bytes) {
                walks.entry(name.as_str()).or_insert(Walk::of(text));
            }
        }
        Snippets(walks)
    }

    /// The line and the mark; `None` where the problem is in no line of these files.
    pub(in crate::cli) fn of(&mut self, problem: &Problem) -> Option<String> {
        let (number, column) = (problem.line?, problem.column?.checked_sub(1)? as usize);
        let walk = self.0.get_mut(problem.file.as_deref()?)?;
        let from = column.saturating_sub(AROUND);
        let rest = walk.to(number, from)?;
        let shown = rest.chars().take_while(|c| *c != '\n');
        let shown: String = shown.take(column - from + AROUND).collect();
        let shown = shown.strip_suffix('\r').unwrap_or(&shown);
        let before: String = shown.chars().take(column - from).collect();
        let (before, after) = (safe(&before), safe(&shown[before.len()..]));
        let mut snippet = format!("  {number} | {before}{after}");
        let blank = number.to_string().chars().count() + before.chars().count();
        let _ = write!(snippet, "\n  {:1$}   ^", "", blank);
        Some(snippet)
    }
}

/// A place in a text, from which the next one is sought.
struct Walk<'a> {
    text: &'a str,
    byte: usize,
    /// From 1.
    line: u32,
    /// Characters before it in its line.
    column: usize,
}

impl<'a> Walk<'a> {
    fn of(text: &'a str) -> Walk<'a> {
        Walk {
            text,
            byte: 0,
            line: 1,
            column: 0,
        }
    }

    /// Walks to a place, and gives the text from there; `None` where the text has no such line.
    /// A column behind the line's end is its end.
    fn to(&mut self, line: u32, column: usize) -> Option<&'a str> {
        if (line, column) < (self.line, self.column) {
            *self = Walk::of(self.text);
        }
        while self.line < line {
            self.byte += self.text[self.byte..].find('\n')? + 1;
            self.line += 1;
            self.column = 0;
        }
        let rest = &self.text[self.byte..];
        if rest.is_empty() && self.column == 0 {
            return None;
        }
        let in_line = rest.chars().take_while(|c| *c != '\n');
        for c in in_line.take(column.saturating_sub(self.column)) {
            self.byte += c.len_utf8();
            self.column += 1;
        }
        Some(&self.text[self.byte..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: u32, column: u32) -> Problem {
        Problem {
            file: Some("a".to_owned()),
            line: Some(line),
            column: Some(column),
            path: String::new(),
            message: String::new(),
            hint: None,
        }
    }

    #[test]
    fn a_mark_stands_below_its_place_in_whatever_order_places_are_asked_for() {
        let files = [("a".to_owned(), "one: ä\r\ntwo: ö x\nthree".into())];
        let mut snippets = Snippets::new(&files);
        let mut at = |line, column| snippets.of(&problem(line, column));
        let two = "  2 | two: ö x\n             ^";
        assert_eq!(at(1, 6).as_deref(), Some("  1 | one: ä\n           ^"));
        assert_eq!(at(2, 8).as_deref(), Some(two));
        assert_eq!(at(3, 1).as_deref(), Some("  3 | three\n      ^"));
        assert_eq!(at(3, 9).as_deref(), Some("  3 | three\n           ^"));
        assert_eq!(at(2, 8).as_deref(), Some(two));
        assert_eq!(at(4, 1), None);
        assert_eq!(at(0, 0), None);
    }

    /// From one place to the next the walk only goes on: it would end elsewhere if it did not.
    #[test]
    fn a_walk_goes_on_from_where_it_is() {
        let mut walk = Walk::of("first\nsecond third\n");
        assert_eq!(walk.to(2, 7), Some("third\n"));
        // What lies behind is not looked at again.
        walk.line = 7;
        assert_eq!(walk.to(7, 9), Some("ird\n"));
        assert_eq!(walk.to(8, 0), None);
    }
}
