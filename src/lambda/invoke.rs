//! A direct invoke: JSON in, JSON out, in the shapes that `zae-limiter limits` sends and reads.
//!
//! No action means `plan`; an unknown action, an unknown field or a bad manifest is an error of the
//! function, which that command line prints, and nothing is written.

use super::budget::Budget;
use super::event::Event;
use super::failure::{Failure, Spelling};
use super::pipeline::Intent;
use super::summary::Summary;
use super::{Function, FunctionError, log, metrics, source};
use crate::manifest::{Manifest, OutOfBand, parse_json};
use crate::model::{ManifestOwner, NamespaceId, NamespaceName};
use crate::plan::{PlanOptions, Policy};
use crate::reconcile::ApplyOptions;
use crate::report::{ApplyReport, PlanReport};
use crate::store::Store;
use serde::Deserialize;
use serde_json::{Value, json};

/// What can be asked for.
pub const ACTIONS: [&str; 3] = ["plan", "apply", "resume"];

/// The fields of a direct invoke. A field that is not known is refused: a guard that is misspelt
/// must not be a guard that is not there.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    action: Option<String>,
    table_name: Option<String>,
    namespace_id: Option<String>,
    namespace: Option<String>,
    manifest: Option<Value>,
    full: Option<bool>,
    out_of_band: Option<Kept>,
    allow_empty: Option<bool>,
    max_delete: Option<usize>,
    adopt: Option<bool>,
    /// Apply only the plan that has this fingerprint.
    fingerprint: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kept {
    Keep,
    Revert,
}

/// A field that is given; the Python command line sends an empty text for what it does not know.
fn given(field: &Option<String>) -> Option<&str> {
    field.as_deref().filter(|text| !text.is_empty())
}

/// What was done, for the logs.
struct Said {
    answer: Value,
    summary: Summary,
    table: String,
    namespace: String,
    /// In seconds, as [`metrics::Line`] has it.
    oldest_pending: Option<u64>,
}

impl Function {
    pub(super) async fn invoke(
        &self,
        event: Event,
        budget: Budget,
    ) -> Result<Value, FunctionError> {
        let Event {
            value: event,
            mut unreadable,
        } = event;
        let action = match event.get("action") {
            None | Some(Value::Null) => "plan".to_owned(),
            Some(Value::String(action)) if action.is_empty() => "plan".to_owned(),
            Some(Value::String(action)) => action.chars().take(64).collect(),
            Some(_) => "not a text".to_owned(),
        };
        let function = self.clone();
        let asked = action.clone();
        let task = async move {
            match unreadable.pop_first() {
                Some((_, reason)) => Err(Failure::Event(reason)),
                None => function.perform(event, &asked, budget).await,
            }
        };
        let outcome = self.guarded(Box::pin(task), budget).await;
        let duration_ms = self.clock().now().0.saturating_sub(budget.began.0);
        let nothing = Summary::default();
        let (summary, table, namespace) = match &outcome {
            Ok(said) => (&said.summary, said.table.clone(), said.namespace.as_str()),
            Err(failure) => {
                tracing::error!(error = %failure, "failed");
                (&nothing, String::new(), "")
            }
        };
        log::invoked(&action, summary, namespace, duration_ms);
        let known = ACTIONS.contains(&action.as_str());
        self.emit(&metrics::Line {
            kind: if known { &action } else { "unknown" },
            table,
            namespace,
            summary,
            succeeded: outcome.is_ok(),
            duration_ms,
            oldest_pending: outcome.as_ref().ok().and_then(|said| said.oldest_pending),
            at: self.clock().now(),
        });
        Ok(outcome?.answer)
    }

    async fn perform(&self, event: Value, action: &str, budget: Budget) -> Result<Said, Failure> {
        if !event.is_object() {
            return Err(Failure::Event("it is not an object".to_owned()));
        }
        // Before the fields: those of an action that is not known are not known either.
        if !ACTIONS.contains(&action) {
            return Err(Failure::UnknownAction(action.to_owned()));
        }
        let ask: Ask =
            serde_json::from_value(event).map_err(|error| Failure::Event(error.to_string()))?;
        let action = given(&ask.action).unwrap_or(action);
        let table = given(&ask.table_name)
            .or(self.options().table.as_deref())
            .ok_or(Failure::NoTable(Spelling::Fields))?;
        let id = given(&ask.namespace_id)
            .map(NamespaceId::parse)
            .transpose()
            .map_err(|error| Failure::Namespace(error.to_string()))?;
        let store = self.tables().open(table).await?;
        if action == "resume" {
            return self.resumed(&ask, &store, id, budget).await;
        }
        let manifest = ask.manifest()?;
        let (_, namespace_id) = source::namespace(&store, Some(manifest.namespace()), id).await?;
        let full = ask.full.unwrap_or_default();
        let intent = Intent {
            store: &store,
            clock: self.clock(),
            manifest: &manifest,
            namespace_id,
            plan: PlanOptions {
                out_of_band: match ask.out_of_band {
                    Some(Kept::Revert) => OutOfBand::Revert,
                    Some(Kept::Keep) | None => OutOfBand::Keep,
                },
                full,
            },
            policy: Policy {
                adopt: ask.adopt.unwrap_or_default(),
                allow_empty: ask.allow_empty.unwrap_or_default(),
                max_delete: ask.max_delete,
                reviewed: ask.fingerprint.clone(),
                ..Policy::strict(ManifestOwner::Cli)
            },
            options: ApplyOptions {
                fanout: self.fanout_within(budget),
                full,
                warnings: warnings(&manifest),
                ..ApplyOptions::default()
            },
            spelling: Spelling::Fields,
        };
        let (answer, summary) = match action {
            "apply" => applied(&intent, full).await?,
            _ => planned(&intent, full).await?,
        };
        Ok(Said {
            answer,
            summary,
            table: table.to_owned(),
            namespace: manifest.namespace().to_string(),
            oldest_pending: None,
        })
    }

    async fn resumed(
        &self,
        ask: &Ask,
        store: &Store,
        id: Option<NamespaceId>,
        budget: Budget,
    ) -> Result<Said, Failure> {
        let named = given(&ask.namespace).or_else(|| ask.manifest.as_ref()?["namespace"].as_str());
        let name = named
            .map(NamespaceName::parse)
            .transpose()
            .map_err(|error| Failure::Namespace(error.to_string()))?;
        let resumed = match (&name, &id) {
            (None, None) => self.resume_all(store, budget).await?,
            _ => {
                let (name, id) = source::namespace(store, name.as_ref(), id).await?;
                self.resume_one(store, &name, id, budget).await?
            }
        };
        Ok(Said {
            answer: resumed.answer,
            summary: resumed.summary,
            table: store.table().to_owned(),
            namespace: resumed.namespace,
            oldest_pending: resumed.oldest_pending,
        })
    }
}

impl Ask {
    /// The manifest, its namespace taken from the invoke where it names none.
    fn manifest(&self) -> Result<Manifest, Failure> {
        let mut json = self.manifest.clone().unwrap_or(Value::Null);
        let Some(namespace) = given(&self.namespace) else {
            return Ok(parse_json(&json)?);
        };
        let name = NamespaceName::parse(namespace)
            .map_err(|error| Failure::Namespace(error.to_string()))?;
        if let Some(fields) = json.as_object_mut() {
            fields
                .entry("namespace")
                .or_insert_with(|| Value::String(namespace.to_owned()));
        }
        let manifest = parse_json(&json)?;
        source::agree("namespace", &name, manifest.namespace())?;
        Ok(manifest)
    }
}

fn warnings(manifest: &Manifest) -> Vec<String> {
    let warnings = manifest.warnings().iter();
    warnings.map(ToString::to_string).collect()
}

async fn planned(intent: &Intent<'_>, full: bool) -> Result<(Value, Summary), Failure> {
    let plan = intent.plan().await?;
    let refusals = plan.refusals(&intent.policy_for(&plan));
    let warnings = intent.options.warnings.clone();
    let report = PlanReport::new(&plan, intent.store.table(), warnings, &refusals);
    let mut answer = described("planned", &report, full);
    answer["pending"] = json!(report.pending.len());
    answer["refusals"] = json!(report.refusals);
    let summary = Summary {
        status: Some("planned"),
        unchanged: report.unchanged,
        pending: report.pending.len(),
        warnings: report.all_warnings().count() + report.kept.len(),
        fingerprint: report.fingerprint.clone(),
        ..Summary::default()
    };
    Ok((answer, summary))
}

async fn applied(intent: &Intent<'_>, full: bool) -> Result<(Value, Summary), Failure> {
    let report: ApplyReport = intent.apply(|_| {}).await?;
    let mut answer = described("applied", &report.plan, full);
    answer["created"] = json!(report.created);
    answer["updated"] = json!(report.updated);
    answer["deleted"] = json!(report.deleted);
    answer["unchanged"] = json!(report.unchanged);
    answer["stamped"] = json!(report.stamped);
    answer["pending"] = json!(report.pending);
    answer["resumed"] = json!(report.full_resumed);
    answer["resumed_fanouts"] = json!(report.resumed);
    answer["errors"] = json!(report.errors);
    answer["warnings"] = report.all_warnings().collect();
    Ok((answer, Summary::of(&report)))
}

/// What plan and apply have in common. `resumed` means, to that command line, that a full apply did
/// less than all because an earlier one was interrupted in it.
fn described(status: &str, report: &PlanReport, full: bool) -> Value {
    let changes: Vec<Value> = report
        .changes
        .iter()
        .map(|change| {
            json!({
                "action": change.action,
                "level": change.name.level,
                "target": change.name.target,
            })
        })
        .collect();
    json!({
        "status": status,
        "changes": changes,
        "created": report.created,
        "updated": report.updated,
        "deleted": report.deleted,
        "unchanged": report.unchanged,
        "full": full,
        "resumed": false,
        "pending": 0,
        "errors": [],
        "warnings": report.all_warnings().collect::<Vec<_>>(),
        "fingerprint": report.fingerprint,
    })
}
