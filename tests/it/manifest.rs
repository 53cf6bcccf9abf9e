//! Manifests: what they mean, what is refused and in which words, and what holds for all of them.

mod laws;
mod meaning;
mod properties;
mod refusals;

use zae_limits::manifest::{Problems, parse_yaml};

/// The problems of a text that must be refused, each checked to say where it is.
fn refused(text: &str) -> Problems {
    let problems = match parse_yaml("t.yaml", text.as_bytes()) {
        Ok(_) => panic!("must be refused:\n{text}"),
        Err(problems) => problems,
    };
    assert!(!problems.as_slice().is_empty());
    for problem in &problems {
        assert_eq!(problem.file.as_deref(), Some("t.yaml"), "{problem}");
        let (line, column) = (problem.line.unwrap(), problem.column.unwrap());
        let start = format!("t.yaml:{line}:{column}: ");
        assert!(line > 0 && column > 0 && problem.to_string().starts_with(&start));
        assert!(!problem.to_string().contains(char::is_control), "{problem}");
    }
    problems
}

/// Cases and what is said about each, for one snapshot.
fn said(cases: &[(&str, &str)]) -> String {
    let mut said = String::new();
    for (what, text) in cases {
        let problems = refused(text);
        for problem in &problems {
            assert!(!problem.path.is_empty(), "no path: {problem}");
        }
        said += &format!("=== {what}\n{}\n---\n{problems}\n\n", text.trim_end());
    }
    said
}
