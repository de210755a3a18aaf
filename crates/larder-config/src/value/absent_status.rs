//! The status of a purge of a URL for which nothing was stored.

use http::StatusCode;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::{Setting, Shape};

/// One of the statuses that the clients of other caches understand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AbsentStatus {
    /// 200, as Varnish answers.
    #[default]
    Ok,
    /// 404, as some of nginx's modules for purges answer.
    NotFound,
    /// 412, as the others of them do.
    PreconditionFailed,
}

impl AbsentStatus {
    /// The status.
    pub const fn code(self) -> StatusCode {
        match self {
            Self::Ok => StatusCode::OK,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        }
    }
}

impl Setting for AbsentStatus {
    fn shape() -> Shape {
        Shape::Numbers(&[200, 404, 412])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match &node.value {
            Value::Integer(200) => return Some(Self::Ok),
            Value::Integer(404) => return Some(Self::NotFound),
            Value::Integer(412) => return Some(Self::PreconditionFailed),
            Value::Text(text) if matches!(text.as_str(), "200" | "404" | "412") => {
                let hint = Some("leave the quotes out".to_owned());
                reading.refuse_value(node, at, Self::shape().expected(), hint);
            }
            _ => reading.refuse_value(node, at, Self::shape().expected(), None),
        }
        None
    }
}
