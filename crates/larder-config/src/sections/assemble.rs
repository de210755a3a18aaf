//! Which responses are templates: a word, or a table that says more about them.
//!
//! In: the value of `assemble`. Out: an [`AssembleSetting`]. How pages are put together from templates is `fragments`'.

use crate::document::{Node, Table, Value};
use crate::reading::{At, Reading, nearest};
use crate::schema::section::section;
use crate::schema::{Consistent, Section, Setting, Shape};
use crate::value::media::BareMediaType;
use crate::value::words::{AssembleMode, Escape};

section! {
    /// Which responses are templates, in place of a word alone: `assemble = { language = "ssi", types = ["text/html"] }`.
    pub(crate) struct AssembleTable in "`assemble`" {
        /// `"auto"`: a response is a template if it says so, by `content="ESI/1.0"` or `content="SSI/1.0"` in
        /// Surrogate-Control. `"ssi"`, `"esi"`: also if it has one of `types`. `"off"`: no response is one.
        language: AssembleMode = "auto", why "An application that writes templates for a cache in front of it says so.";
        /// Media types of templates under `"ssi"` and `"esi"`, without parameters.
        types: Vec<BareMediaType> = ["text/html"], why "Includes stand in pages. A picture or a script in which such text occurs goes on as it is.";
        /// How ESI's `vars` writes values that come from a request. `"html"` escapes `<`, `>`, `&` and quotes; `"none"` writes
        /// them as they came. SSI has the attribute `encoding` for it.
        escape: Escape = "html", why "A cookie or a parameter is a visitor's text. Unescaped, it could bring a script into the page.";
        /// Answer 502 (`template-invalid`) where a template has a directive that cannot be read or that larder does not offer.
        /// A fragment that is such a template fails, with `invalid`. Without it, such a directive is left out, or replaced by
        /// the error text of SSI.
        strict: bool = false, why "A page with a fault in one place is better than none.";
    }
}

impl Consistent for AssembleTable {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        let Some(node) = table.get("types") else { return };
        let types_at = At::Key(at, "types");
        if matches!(&node.value, Value::List(items) if items.is_empty()) {
            let hint = Some("write language = \"auto\" for templates that say so alone".to_owned());
            reading.refuse_value(node, &types_at, "at least one media type", hint);
        } else if matches!(self.language, AssembleMode::Auto | AssembleMode::Off) {
            let problem = reading.problem(&node.place, &types_at, "it is not used");
            reading.warn(problem.hint("types count under language = \"ssi\" or \"esi\""));
        }
    }
}

/// Which responses are templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssembleSetting {
    /// How they are known.
    pub language: AssembleMode,
    /// Their media types under `ssi` and `esi`.
    pub types: Vec<BareMediaType>,
    /// How values from a request are written.
    pub escape: Escape,
    /// Whether a problem in a template is an error.
    pub strict: bool,
}

impl From<AssembleTable> for AssembleSetting {
    fn from(AssembleTable { language, types, escape, strict }: AssembleTable) -> Self {
        Self { language, types, escape, strict }
    }
}

impl Default for AssembleSetting {
    fn default() -> Self {
        crate::schema::Fallback::Absent.value::<AssembleTable>().into()
    }
}

const MODES: [AssembleMode; 4] =
    [AssembleMode::Auto, AssembleMode::Ssi, AssembleMode::Esi, AssembleMode::Off];

impl Setting for AssembleSetting {
    fn shape() -> Shape {
        Shape::AnyOf(vec![AssembleMode::shape(), Shape::Section(AssembleTable::doc)])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        const WHICH: &str = "write the language of the templates: \"ssi\" or \"esi\"";
        let hint = match &node.value {
            Value::Table(_) => return AssembleTable::read(node, at, reading).map(Self::from),
            Value::Text(text) => match MODES.into_iter().find(|mode| mode.word() == text) {
                Some(language) => return Some(Self { language, ..Self::default() }),
                None if text == "on" => Some(WHICH.to_owned()),
                None => {
                    let near = nearest(text, MODES.map(AssembleMode::word));
                    near.map(|word| format!("did you mean \"{word}\"?"))
                }
            },
            Value::Boolean(true) => Some(WHICH.to_owned()),
            Value::Boolean(false) => Some("did you mean \"off\"?".to_owned()),
            _ => None,
        };
        reading.refuse_value(node, at, Self::shape().expected(), hint);
        None
    }
}
