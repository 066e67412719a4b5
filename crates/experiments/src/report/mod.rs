//! Output of results: tables for a terminal, pages of Markdown and HTML.
//!
//! | module | contents |
//! |---|---|
//! | [`text`] | tables with aligned columns |
//! | [`page`] | reports of reproductions: an overview, a page for each paper, a page for all |
//! | [`results`] | the page of a run |
//! | `entry` | the report of one figure or table |
//! | `block` | parts of a report, in Markdown and in HTML |
//! | [`html`] | the template of a self-contained HTML page |

pub(crate) mod block;
mod entry;
pub mod html;
pub mod page;
pub mod results;
pub mod text;
