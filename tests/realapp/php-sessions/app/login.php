<?php
// Whoever says a name is that person.
session_start();
session_regenerate_id(true);
$_SESSION['user'] = $_POST['user'] ?? 'nobody';
echo 'welcome';
