<?php
// A page of one visitor's own, with what PHP says of it by itself.
session_start();
echo session_id(), ' ', $_SESSION['user'] ?? 'nobody', "\n";
