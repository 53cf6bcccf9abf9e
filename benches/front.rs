//! A server in front of what is measured against: the embedded engine, or a stand-in that has the answers of
//! one fan-out, or of one plan, ready. Either may be made to answer later, as a table behind a network does.

use crate::levels::Levels;
use crate::{Failure, world};
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use axum::body::{self, Body};
use axum::http::{HeaderMap, Request, Response};
use axum::response::IntoResponse;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use zae_limits::model::NamespaceId;
use zae_limits::store::Embedded;
use zae_limits::table::BucketId;

/// Buckets on a page of an index: what DynamoDB's megabyte holds of buckets with one limit.
const PAGE: usize = 2_400;
/// More than any request here.
const LARGEST_BODY: usize = 16 << 20;

/// What answers.
#[derive(Debug)]
pub enum Behind {
    /// The embedded database.
    Engine(Embedded),
    /// So many buckets of one resource that is disabled, and nothing else: every stamp lands at once.
    StandIn {
        /// The namespace they are in.
        ns: NamespaceId,
        /// How many.
        buckets: usize,
    },
    /// Levels that are as declared.
    Levels(Levels),
}

/// Answers on a listener until `shutdown` completes, every answer as late as told.
pub async fn serve(
    behind: Behind,
    later: Duration,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let behind = Arc::new(behind);
    let app = axum::Router::new().fallback(move |request: Request<Body>| {
        let behind = behind.clone();
        async move {
            if !later.is_zero() {
                tokio::time::sleep(later).await;
            }
            match behind.answer(request).await {
                Ok(answer) => answer,
                Err(failure) => {
                    let text = json!({ "__type": "BenchFailure", "message": failure.to_string() });
                    (axum::http::StatusCode::BAD_REQUEST, text.to_string()).into_response()
                }
            }
        }
    });
    Ok(axum::serve(listener, app)
        .with_graceful_shutdown(shutdown)
        .await?)
}

impl Behind {
    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let (head, body) = request.into_parts();
        let body = body::to_bytes(body, LARGEST_BODY).await?;
        match self {
            Behind::Engine(embedded) => {
                let request = Request::from_parts(head, body.to_vec().into());
                let engine = SharedHttpConnector::new(embedded.clone());
                let answer = engine.call(HttpRequest::try_from(request)?).await?;
                let status = answer.status().as_u16();
                let body = answer.into_body().bytes().unwrap_or_default().to_vec();
                Ok(Response::builder().status(status).body(body.into())?)
            }
            Behind::StandIn { ns, buckets } => {
                let operation = operation(&head.headers)?;
                // Read no further than it must be: the client runs on the same processors.
                let asked = std::str::from_utf8(&body)?;
                let text = match operation {
                    "Query" => page(ns, *buckets, &serde_json::from_str(asked)?)?,
                    "BatchGetItem" => config(ns, asked),
                    "BatchExecuteStatement" => landed(asked),
                    other => return Err(format!("the stand-in has no answer to {other}").into()),
                };
                Ok(text.into_response())
            }
            Behind::Levels(levels) => {
                let asked = serde_json::from_slice(&body)?;
                let operation = operation(&head.headers)?;
                Ok(levels.answer(operation, &asked)?.into_response())
            }
        }
    }
}

fn operation(headers: &HeaderMap) -> Result<&str, Failure> {
    let target = headers.get("x-amz-target").ok_or("no operation")?;
    Ok(target.to_str()?.rsplit('.').next().unwrap_or_default())
}

/// A page of buckets that show nothing.
fn page(ns: &NamespaceId, buckets: usize, asked: &Value) -> Result<String, Failure> {
    // A page's end says how many buckets come before it.
    let place = |key: &Value| key["S"].as_str().map(str::parse::<usize>).transpose();
    let start = place(&asked["ExclusiveStartKey"]["GSI2SK"])?.unwrap_or(0);
    let most = place(&asked["ExpressionAttributeValues"][":end"])?.unwrap_or(buckets);
    let end = most.min(start + PAGE);
    let mut items = String::new();
    for index in start..end {
        let id = BucketId {
            entity: format!("user-{index}").parse()?,
            resource: world::RESOURCE.parse()?,
            shard: 0,
        };
        let comma = if index > start { "," } else { "" };
        write!(items, r#"{comma}{{"PK":{{"S":"{}"}}}}"#, id.pk(ns))?;
    }
    let count = end - start;
    let next = match end < most {
        true => format!(r#","LastEvaluatedKey":{{"GSI2SK":{{"S":"{end}"}}}}"#),
        false => String::new(),
    };
    Ok(format!(
        r#"{{"Items":[{items}],"Count":{count},"ScannedCount":{count}{next}}}"#
    ))
}

/// Of all config asked for, the resource's alone is there.
fn config(ns: &NamespaceId, asked: &str) -> String {
    let pk = format!("{ns}/RESOURCE#{}", world::RESOURCE);
    let item = json!({ "PK": { "S": pk }, "SK": { "S": "#CONFIG" }, "disabled": { "BOOL": true } });
    let found = match asked.contains(&pk) {
        false => Vec::new(),
        true => vec![item],
    };
    json!({ "Responses": { world::TABLE: found } }).to_string()
}

fn landed(asked: &str) -> String {
    let statements = asked.matches(r#""Statement":"#).count();
    let answers = vec![format!(r#"{{"TableName":"{}"}}"#, world::TABLE); statements];
    format!(r#"{{"Responses":[{}]}}"#, answers.join(","))
}
