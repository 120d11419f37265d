//! The result model and its renderings: JSON, CSV, text, HTML.
