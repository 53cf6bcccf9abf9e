//! A table that misbehaves by a seeded schedule: it throttles, fails, is slow, loses answers, answers
//! batches in part. What it says it did not do it did not do, and nothing else may be relied upon.

use crate::transport::{Layer, Request};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One thing that a table does instead of answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misbehaviour {
    /// "Throughput exceeded".
    Throttles,
    /// A server error; what was asked for is done, or not.
    Fails,
    /// No answer in time; what was asked for is done, or not.
    TimesOut,
    /// The connection breaks; what was asked for is done, or not.
    Disconnects,
    /// The answer takes seconds.
    IsSlow,
    /// A part of a batch is not done, and the answer says so.
    AnswersInPart,
}

impl Misbehaviour {
    /// All of them.
    pub const ALL: [Misbehaviour; 6] = [
        Misbehaviour::Throttles,
        Misbehaviour::Fails,
        Misbehaviour::TimesOut,
        Misbehaviour::Disconnects,
        Misbehaviour::IsSlow,
        Misbehaviour::AnswersInPart,
    ];
}

/// The weather over a table. Clones share it.
#[derive(Debug, Clone)]
pub struct Weather(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    random: Xoshiro256PlusPlus,
    kinds: Vec<Misbehaviour>,
    /// How likely one request meets it, in percent.
    percent: u32,
    struck: usize,
}

/// What happens to one request.
#[derive(Debug, Clone, Copy)]
struct Stroke {
    kind: Misbehaviour,
    lands: bool,
    seed: u64,
}

impl Weather {
    /// Such weather, the same for every run of a seed as long as requests come in the same order.
    pub fn new(seed: u64, kinds: &[Misbehaviour], percent: u32) -> Weather {
        Weather(Arc::new(Mutex::new(State {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            kinds: kinds.to_vec(),
            percent,
            struck: 0,
        })))
    }

    /// How many requests have met it.
    pub fn struck(&self) -> usize {
        self.state().struck
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stroke(&self) -> Option<Stroke> {
        let mut state = self.state();
        if state.random.random_range(0..100) >= state.percent {
            return None;
        }
        state.struck += 1;
        let kinds = state.kinds.len();
        let kind = state.random.random_range(0..kinds);
        Some(Stroke {
            kind: state.kinds[kind],
            lands: state.random.random(),
            seed: state.random.random(),
        })
    }
}

impl Layer for Weather {
    fn pass(&self, request: HttpRequest, next: &SharedHttpConnector) -> HttpConnectorFuture {
        let Some(stroke) = self.stroke() else {
            return next.call(request);
        };
        let next = next.clone();
        HttpConnectorFuture::new(async move {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(stroke.seed);
            match stroke.kind {
                Misbehaviour::IsSlow => {
                    let ms = random.random_range(100..4_000);
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    return next.call(request).await;
                }
                Misbehaviour::AnswersInPart => {
                    return answered_in_part(request, &next, &mut random).await;
                }
                Misbehaviour::Throttles => {
                    return Ok(error(400, "ProvisionedThroughputExceededException"));
                }
                _ if stroke.lands => {
                    next.call(request).await?;
                }
                _ => {}
            }
            match stroke.kind {
                Misbehaviour::Fails => Ok(error(500, "InternalServerError")),
                Misbehaviour::TimesOut => Err(ConnectorError::timeout("no answer".into())),
                _ => Err(ConnectorError::io("the connection broke".into())),
            }
        })
    }
}

/// An error as the service words it.
fn error(status: u16, code: &str) -> HttpResponse {
    let code = format!("com.amazonaws.dynamodb.v20120810#{code}");
    respond(status, &json!({ "__type": code, "message": "bad weather" }))
}

/// An answer.
pub fn respond(status: u16, body: &Value) -> HttpResponse {
    let status = status.try_into().expect("a status");
    HttpResponse::new(status, SdkBody::from(body.to_string()))
}

/// Carries a part of a batch out and says of the rest that it was not. What is no batch is carried
/// out as it is.
async fn answered_in_part(
    mut request: HttpRequest,
    next: &SharedHttpConnector,
    random: &mut Xoshiro256PlusPlus,
) -> Result<HttpResponse, ConnectorError> {
    let Request {
        operation,
        mut body,
    } = Request::read(&request);
    match operation.as_str() {
        "BatchExecuteStatement" => {
            let left = take(&mut body["Statements"], random);
            let mut answer = Value::Null;
            if !all(&body["Statements"]).is_empty() {
                answer = answer_of(&mut request, &body, next).await?;
            }
            let mut answers = all(&answer["Responses"]).into_iter();
            let responses = left.iter().map(|left| match left {
                None => answers.next().expect("an answer"),
                Some(code) => json!({ "Error": { "Code": code, "Message": "bad weather" } }),
            });
            let responses: Vec<Value> = responses.collect();
            Ok(respond(200, &json!({ "Responses": responses })))
        }
        "BatchGetItem" => {
            let tables = body["RequestItems"].as_object().expect("tables");
            let table = tables.keys().next().expect("a table").clone();
            let asked = body["RequestItems"][&table].clone();
            let left = take(&mut body["RequestItems"][&table]["Keys"], random);
            let mut answer = json!({ "Responses": { &table: [] } });
            if !all(&body["RequestItems"][&table]["Keys"]).is_empty() {
                answer = answer_of(&mut request, &body, next).await?;
            }
            let keys = all(&asked["Keys"]).into_iter().zip(&left);
            let unread: Vec<Value> = keys.filter_map(|(key, left)| left.map(|_| key)).collect();
            let mut unprocessed = asked;
            unprocessed["Keys"] = json!(unread);
            if !unread.is_empty() {
                answer["UnprocessedKeys"] = json!({ table: unprocessed });
            }
            Ok(respond(200, &answer))
        }
        _ => next.call(request).await,
    }
}

fn all(list: &Value) -> Vec<Value> {
    list.as_array().cloned().unwrap_or_default()
}

/// Takes some entries out of a list, and says for each that there was why it is left.
fn take(list: &mut Value, random: &mut Xoshiro256PlusPlus) -> Vec<Option<&'static str>> {
    const CODES: [&str; 4] = [
        "ThrottlingError",
        "ProvisionedThroughputExceeded",
        "TransactionConflict",
        "InternalServerError",
    ];
    let entries = all(list);
    let left: Vec<_> = entries
        .iter()
        .map(|_| {
            let code = CODES[random.random_range(0..CODES.len())];
            random.random::<bool>().then_some(code)
        })
        .collect();
    let kept = entries.into_iter().zip(&left);
    *list = kept
        .filter(|(_, left)| left.is_none())
        .map(|(entry, _)| entry)
        .collect();
    left
}

/// What a request is answered with this body in place of its own.
pub async fn answer_of(
    request: &mut HttpRequest,
    body: &Value,
    next: &SharedHttpConnector,
) -> Result<Value, ConnectorError> {
    let body = body.to_string();
    let length = body.len().to_string();
    *request.body_mut() = SdkBody::from(body);
    request.headers_mut().insert("content-length", length);
    let request = request.try_clone().expect("a body in memory");
    let answer = next.call(request).await?;
    let bytes = answer.body().bytes().expect("an answer in memory");
    Ok(serde_json::from_slice(bytes).expect("JSON"))
}
