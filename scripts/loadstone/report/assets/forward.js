// For the small files at the stable addresses of pages (publish/site/publications.py): redirects to the page in the newest
// publication that has it. The choices in the address are kept.
"use strict";

location.replace(document.querySelector("link[rel=canonical]").href + location.hash);
