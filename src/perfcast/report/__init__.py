"""The self-contained HTML report: `report_context` reads results, `render_page` writes the page, `plots` draws."""
