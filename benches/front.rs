//! A server in front of what is measured against: the embedded engine, or a stand-in that has the answers of
//! one fan-out, or of one plan, ready. Either may be made to answer later, as a table behind a network does.

use crate::Failure;
use crate::later::Later;
use crate::levels::Levels;
use crate::stamped::Stamped;
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use axum::body::{self, Body};
use axum::http::{HeaderMap, Request, Response};
use axum::response::IntoResponse;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use zae_limits::store::Embedded;

/// More than any request here.
const LARGEST_BODY: usize = 16 << 20;

/// What answers.
#[derive(Debug)]
pub enum Behind {
    /// The embedded database.
    Engine(Embedded),
    /// Buckets on which every stamp lands.
    StandIn(Stamped),
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
    let (behind, later) = (Arc::new(behind), Arc::new(Later::by(later)));
    let app = axum::Router::new().fallback(move |request: Request<Body>| {
        let (behind, later) = (behind.clone(), later.clone());
        async move {
            later.wait().await;
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
            Behind::StandIn(stamped) => {
                let operation = operation(&head.headers)?;
                let asked = std::str::from_utf8(&body)?;
                Ok(stamped.answer(operation, asked)?.into_response())
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
