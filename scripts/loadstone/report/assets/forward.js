// Of the small documents at the addresses of pages (publish/site/publications.py): leads on to the page as it was last published,
// with what the address chose.
"use strict";

location.replace(document.querySelector("link[rel=canonical]").href + location.hash);
