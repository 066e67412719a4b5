//! The list of disciplines, one line for each. The file of a discipline has the details.

use crate::any::AnyDiscipline;
use crate::limit::Limit;
use crate::text::Written;
use crate::{
    avq, blue, bred, cobalt, codel, drr, dualpi2, fifo, fq_codel, fred, paqm, pi, pie, red, rem, sfb, sfc,
    sred,
};
use faircast_core::own::{Own, OwnFactory, Registry};
use faircast_core::spec::{self, Described, SpecError};
use faircast_core::time::{Rate, Span};

/// The disciplines that this program has registered.
pub static QUEUES: Registry<dyn QueueFactory> = Registry::new("queue");

/// Creates queue disciplines of another crate, named `own:NAME`, with options after a comma.
pub trait QueueFactory: OwnFactory {
    /// Creates the discipline for a link of this rate and propagation delay: a boxed [`Discipline`](crate::Discipline) or
    /// [`Qdisc`](crate::Qdisc), converted by `into`.
    fn queue(&self, options: &str, rate: Rate, delay: Span) -> AnyDiscipline;
    /// Returns whether the discipline marks ECN-capable packets.
    fn marks(&self, options: &str) -> bool {
        options.split(',').any(|option| option == "ecn")
    }
}

/// Declares an enum of disciplines that can be read, checked, displayed and built. Each variant holds one [`Written`].
macro_rules! disciplines {
    ($($(#[$doc:meta])* $variant:ident($held:ty)),+ $(,)?) => {
        /// Specification of a discipline.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum QueueSpec {
            $($(#[$doc])* $variant($held),)+
            /// A discipline of another crate.
            Own(Own<dyn QueueFactory>),
        }

        impl QueueSpec {
            /// Returns the specification if its values are valid.
            ///
            /// # Errors
            /// If a value is invalid; the error names the first invalid value.
            pub fn checked(self) -> Result<QueueSpec, SpecError> {
                match &self {
                    $(QueueSpec::$variant(held) => held.check().map(|()| self),)+
                    QueueSpec::Own(_) => Ok(self),
                }
            }

            /// Builds the discipline for a link of this rate and propagation delay.
            pub fn build(&self, rate: Rate, delay: Span) -> AnyDiscipline {
                match self {
                    $(QueueSpec::$variant(held) => held.make(rate, delay).into(),)+
                    QueueSpec::Own(own) => own.factory().queue(own.options(), rate, delay),
                }
            }

            /// Returns the textual form of each built-in discipline, with its options.
            pub fn known() -> Vec<(&'static str, Vec<Described>)> {
                vec![$((<$held>::FORM, <$held>::described())),+]
            }
        }

        impl std::str::FromStr for QueueSpec {
            type Err = SpecError;

            fn from_str(text: &str) -> Result<QueueSpec, SpecError> {
                if let Some(own) = QUEUES.read(text, ',') {
                    return own.map(QueueSpec::Own);
                }
                let (name, options) = spec::split(text);
                $(if name == <$held>::NAME {
                    return <$held>::read(options).map(QueueSpec::$variant).and_then(QueueSpec::checked);
                })+
                let known = [$(<$held>::FORM),+].join(", ");
                Err(SpecError::UnknownName { kind: "queue", name: name.to_owned(), known })
            }
        }

        /// Writes all options, so that parsing the text gives the same value.
        impl std::fmt::Display for QueueSpec {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(QueueSpec::$variant(held) => write!(f, "{},{}", <$held>::NAME, held.options()),)+
                    QueueSpec::Own(own) if own.options().is_empty() => f.write_str(own.name()),
                    QueueSpec::Own(own) => write!(f, "{},{}", own.name(), own.options()),
                }
            }
        }
    };
}

disciplines! {
    /// First in, first out; an arriving packet is dropped if the buffer is full. The packet in transmission occupies the buffer
    /// until its last bit has left.
    DropTail(Limit),
    /// First in, first out as a [`Qdisc`](crate::qdisc::Qdisc); drops from the tail or the front.
    Fifo(fifo::Config),
    /// Random early detection.
    Red(red::Config),
    /// Flow random early drop.
    Fred(fred::Config),
    /// Stabilized RED.
    Sred(sred::Config),
    /// BLUE.
    Blue(blue::Config),
    /// Stochastic fair BLUE.
    Sfb(sfb::Config),
    /// Balanced RED.
    Bred(bred::Config),
    /// Random exponential marking.
    Rem(rem::Config),
    /// Proportional and integral control.
    Pi(pi::Config),
    /// Adaptive virtual queue.
    Avq(avq::Config),
    /// Prediction and optimal control (paper 002, chapter 5).
    Paqm(paqm::Config),
    /// State feedback (paper 002, chapter 6).
    Sfc(sfc::Config),
    /// Proportional integral controller enhanced.
    Pie(pie::Config),
    /// Controlled delay.
    Codel(codel::Config),
    /// CoDel and BLUE, as in CAKE.
    Cobalt(cobalt::Config),
    /// Deficit round robin.
    Drr(drr::Config),
    /// Deficit round robin with CoDel for every flow.
    FqCodel(fq_codel::Config),
    /// Two coupled queues, one of them for L4S.
    DualPi2(dualpi2::Config),
}

impl QueueSpec {
    /// Whether the discipline marks ECN-capable packets.
    pub fn marks(&self) -> bool {
        match self {
            QueueSpec::DualPi2(_) => true,
            QueueSpec::Own(own) => own.factory().marks(own.options()),
            // In all other disciplines the option for marks is named `ecn`.
            _ => self.to_string().split(',').any(|option| option == "ecn"),
        }
    }

    /// A buffer that never drops.
    pub const UNLIMITED: QueueSpec = QueueSpec::DropTail(Limit::Packets(u32::MAX));
}
