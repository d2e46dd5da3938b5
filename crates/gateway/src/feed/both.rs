//! One decoding for two who take it. Steps, which explain a decoding, are for neither.

use fanfare_fast::program::{Field, TemplateProgram};
use fanfare_fast::{Decimal, Visitor};

/// Tells both, the first first.
pub(crate) struct Both<'a, A, B>(pub(crate) &'a mut A, pub(crate) &'a mut B);

macro_rules! both {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {
        $(
            #[inline]
            fn $name(&mut self, $($arg: $type),*) {
                self.0.$name($($arg),*);
                self.1.$name($($arg),*);
            }
        )*
    };
}

impl<A: Visitor, B: Visitor> Visitor for Both<'_, A, B> {
    both! {
        begin_message(template: &TemplateProgram);
        end_message(template: &TemplateProgram);
        unsigned(field: &Field, value: u64);
        signed(field: &Field, value: i64);
        decimal(field: &Field, value: Decimal);
        ascii(field: &Field, value: &[u8]);
        unicode(field: &Field, value: &[u8]);
        bytes(field: &Field, value: &[u8]);
        absent(field: &Field);
        begin_group(field: &Field);
        end_group(field: &Field);
        begin_sequence(field: &Field, length: u32);
        begin_entry(field: &Field, index: u32);
        end_entry(field: &Field);
        end_sequence(field: &Field);
        begin_template(field: &Field, template: &TemplateProgram);
        end_template(field: &Field);
    }
}
