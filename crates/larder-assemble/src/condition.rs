//! One condition for itself: for fuzzing.
//!
//! In: the text of `expr` or `test`, and the values of variables by their names. Out: whether it holds; `None` where it cannot be read.

use larder_http::template::Language;

use crate::composed::Lookup;
use crate::expression::{esi, ssi};
use crate::name::{self, Variable};
use crate::value::Value;

struct Values<'a> {
    of: &'a dyn Fn(&[u8]) -> Option<Vec<u8>>,
    spent: usize,
}

impl Lookup for Values<'_> {
    fn look_up(&mut self, variable: &Variable) -> Option<Value> {
        let name: &[u8] = match variable {
            Variable::Ssi(name) => &name.text,
            Variable::Esi(name) => match &name.known {
                name::esi::EsiKnown::Assigned(name) | name::esi::EsiKnown::Cookie(name) => name,
                _ => return None,
            },
        };
        (self.of)(name).map(Value::foreign)
    }

    fn spend(&mut self, operations: usize) {
        self.spent += operations;
    }

    fn captured(&mut self, numbered: Vec<Option<Value>>, _: Vec<(Box<[u8]>, Value)>) {
        assert!(numbered.len() <= 10 && numbered.first().is_some_and(Option::is_some), "a match has a whole");
    }
}

/// Whether a condition holds.
pub fn holds(language: Language, text: &[u8], of: &dyn Fn(&[u8]) -> Option<Vec<u8>>) -> Option<bool> {
    let mut values = Values { of, spent: 0 };
    let holds = match language {
        Language::Ssi => ssi::SsiCondition::read(text).ok()?.expression.is_true(&mut values),
        Language::Esi => esi::EsiCondition::read(text).ok()?.expression.is_true(&mut values),
    };
    assert!(values.spent <= 2 * text.len() + 1 + 64 * 1024, "more work than there is text");
    Some(holds)
}
