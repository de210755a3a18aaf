//! Whole numbers and truth.

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::{Setting, Shape};

macro_rules! count {
    ($($type:ty),+) => {$(
        impl Setting for $type {
            fn shape() -> Shape {
                Shape::Integer
            }

            fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
                match &node.value {
                    Value::Integer(number) => {
                        if let Ok(number) = Self::try_from(*number) {
                            return Some(number);
                        }
                        reading.refuse_value(node, at, format!("0 to {}", Self::MAX), None);
                    }
                    Value::Text(text) if text.parse::<Self>().is_ok() => {
                        let hint = Some("leave the quotes out".to_owned());
                        reading.refuse_value(node, at, Self::shape().expected(), hint);
                    }
                    _ => reading.refuse_value(node, at, Self::shape().expected(), None),
                }
                None
            }

            fn is_within(&self, low: &Self, high: &Self) -> bool {
                (low..=high).contains(&self)
            }
        }
    )+};
}

count!(usize, u64, u32, u16, u8);

impl Setting for bool {
    fn shape() -> Shape {
        Shape::Boolean
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let hint = match &node.value {
            Value::Boolean(value) => return Some(*value),
            Value::Text(text) if matches!(text.as_str(), "true" | "false") => {
                Some("leave the quotes out".to_owned())
            }
            _ => None,
        };
        reading.refuse_value(node, at, Self::shape().expected(), hint);
        None
    }
}
