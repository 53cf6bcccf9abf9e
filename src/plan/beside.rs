//! A sorted map walked beside another one: each of its keys is compared a few times, where looking
//! every one of them up would compare it some twenty times.

use crate::model::Level;
use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::iter::Peekable;

/// What a map holds at levels that are asked for in their order.
pub(super) struct Beside<'m, V> {
    left: Peekable<btree_map::Iter<'m, Level, V>>,
    /// The last level that was passed over.
    passed: Option<&'m Level>,
}

impl<'m, V> Beside<'m, V> {
    pub(super) fn of(map: &'m BTreeMap<Level, V>) -> Self {
        Beside {
            left: map.iter().peekable(),
            passed: None,
        }
    }

    /// What the map holds at a level, which comes after every level asked for before.
    pub(super) fn at(&mut self, level: &Level) -> Option<&'m V> {
        debug_assert!(self.passed.is_none_or(|passed| passed < level), "in order");
        loop {
            let (next, value) = *self.left.peek()?;
            match next.cmp(level) {
                Ordering::Less => self.passed = Some(next),
                Ordering::Equal => return Some(value),
                Ordering::Greater => return None,
            }
            self.left.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_in_order_is_what_looking_up_finds() {
        let level = |name: &str| Level::Resource(name.parse().expect("a name"));
        let names = ["a", "b", "d", "e", "g"];
        for held in 0..1_u32 << names.len() {
            let held = (0..names.len()).filter(|at| held >> at & 1 == 1);
            let map: BTreeMap<Level, usize> = held.map(|at| (level(names[at]), at)).collect();
            for asked in 0..1_u32 << names.len() {
                let mut beside = Beside::of(&map);
                for at in (0..names.len()).filter(|at| asked >> at & 1 == 1) {
                    let asked = level(names[at]);
                    assert_eq!(beside.at(&asked), map.get(&asked));
                }
            }
        }
    }
}
