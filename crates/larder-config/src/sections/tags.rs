//! Fields of responses that carry tags: their names alone, or a table that says more about them.

use http::HeaderName;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::section::section;
use crate::schema::{Consistent, Section, Setting, Shape, TextSetting};
use crate::value::tag_field::TagField;

section! {
    /// Fields that carry tags, in place of their names alone: `tags = { fields = ["xkey"], pass = true }`.
    pub(crate) struct TagsTable in "`tags`" {
        /// Their names. Tags are separated by blanks and commas, and letter case counts. `"default"` stands for the names below.
        fields: Option<Vec<TagField>> = ("`[\"default\"]`: the names below"), why "Most applications that tag their pages send one of these.";
        /// Send these fields to clients. Without it, larder takes them out of its answers.
        pass: bool = false, why "They are long, and mean something to caches alone. Another cache in front of larder may need them.";
    }
}

impl Consistent for TagsTable {}

/// Fields of responses that carry tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagFields {
    /// Their names, each once.
    pub fields: Vec<HeaderName>,
    /// Whether clients are sent them.
    pub pass: bool,
}

impl Default for TagFields {
    fn default() -> Self {
        Self { fields: TagField::names(&[TagField::Known]), pass: false }
    }
}

impl Setting for TagFields {
    fn shape() -> Shape {
        let names = Shape::List(Box::new(Shape::Text(TagField::TEXT)));
        Shape::AnyOf(vec![names, Shape::Section(TagsTable::doc)])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let (fields, pass) = match &node.value {
            Value::Table(_) => {
                let table = TagsTable::read(node, at, reading)?;
                (table.fields, table.pass)
            }
            _ => (Some(Vec::read(node, at, reading)?), false),
        };
        let fields = fields.unwrap_or_else(|| vec![TagField::Known]);
        Some(Self { fields: TagField::names(&fields), pass })
    }
}
