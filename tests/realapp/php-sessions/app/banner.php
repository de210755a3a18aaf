<?php
// Says nothing of caches. The same for all who read the same language, logged in or not.
session_cache_limiter('');
session_start();
echo ($_COOKIE['lang'] ?? 'en') === 'de' ? "Willkommen\n" : "Welcome\n";
