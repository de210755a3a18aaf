<?php
// The same for all, and said to be: PHP adds Cache-Control: public and its own three hours.
session_cache_limiter('public');
session_start();
echo "<h1>Catalogue</h1>\n";
