//! Results for people: tables on a terminal, pages of Markdown and HTML.
//!
//! | module | what it holds |
//! |---|---|
//! | [`figures`] | figures of any scenario's results |
//! | [`text`] | tables with aligned columns |
//! | [`page`] | a report of reproductions, as one Markdown and one HTML page |
//! | [`html`] | the frame of a self-contained HTML page |

pub mod figures;
pub mod html;
pub mod page;
pub mod text;
