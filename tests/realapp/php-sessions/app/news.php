<?php
// Says nothing of caches. Strangers all see the same, a visitor who is logged in sees a name.
session_cache_limiter('');
session_start();
echo "<h1>News</h1>\n<p>", $_SESSION['user'] ?? 'stranger', "</p>\n";
