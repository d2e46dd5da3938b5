//! Unions of other programs' types. This crate reads them and writes none.

use super::{Extensibility, Fault, Member, TypeError, names};

/// A union: a discriminator, and the member that it selects.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnionType {
    /// The scoped name.
    pub name: String,
    /// The way in which the type may grow.
    pub extensibility: Extensibility,
    /// The selecting value: a boolean, an integer, a character, or an enumeration.
    pub discriminator: Member,
    /// The members that may be selected.
    pub cases: Vec<Case>,
}

/// A member of a union.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Case {
    /// Values of the discriminator that select it.
    pub labels: Vec<i32>,
    /// Whether all values without a case select it.
    pub is_default: bool,
    /// The member.
    pub member: Member,
}

impl UnionType {
    pub(super) fn check_at(&self, depth: usize) -> Result<(), TypeError> {
        let fault = |path: String, why| Err(TypeError { path, why });
        if depth >= super::MAX_DEPTH {
            return fault(self.name.clone(), Fault::TooDeep);
        }
        if !names::is_scoped_name(&self.name) {
            return fault(self.name.clone(), Fault::BadName);
        }
        for Case { member, .. } in &self.cases {
            if !names::is_identifier(&member.name) {
                return fault(format!("{}.{}", self.name, member.name), Fault::BadName);
            }
            member.kind.check_at(depth)?;
        }
        Ok(())
    }
}
