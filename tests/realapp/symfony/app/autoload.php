<?php
// Symfony where Debian's packages put it, and the shop's own classes.

require_once '/usr/share/php/Symfony/Bundle/FrameworkBundle/autoload.php';
require_once '/usr/share/php/Symfony/Bundle/TwigBundle/autoload.php';

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Shop\\')) {
        require __DIR__.'/src/'.str_replace('\\', '/', substr($class, 5)).'.php';
    }
});
