//! Results for people: tables on a terminal, pages of Markdown and HTML.
//!
//! | module | what it holds |
//! |---|---|
//! | [`text`] | tables with aligned columns |
//! | [`page`] | reports of reproductions: an overview, a page for each paper, all in one |
//! | `entry` | what a report says of one figure or table |
//! | `block` | what a report is made of, in Markdown and in HTML |
//! | [`html`] | the frame of a self-contained HTML page |

pub(crate) mod block;
mod entry;
pub mod html;
pub mod page;
pub mod text;
